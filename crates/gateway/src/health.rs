//! Whether the gateway can do its work: Kafka with the right log, and the store, both asked a moment ago at most.

use std::time::Duration;

use tidemark_store::Store;
use tokio::{sync::Mutex, time::Instant};

use crate::{log_end::LogEnd, problem::chain};

/// How long an answer holds: a probe a second, from however many sides, costs one question.
const HOLDS: Duration = Duration::from_secs(1);

/// How long a server may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// What a gateway lacks, if anything.
#[derive(Debug)]
pub(crate) struct Health {
    store: Store,
    known: Mutex<Option<(Instant, Vec<String>)>>,
}

impl Health {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            known: Mutex::default(),
        }
    }

    /// What is missing, in words for an operator; nothing where the gateway is ready.
    pub(crate) async fn missing(&self, log: &LogEnd) -> Vec<String> {
        let mut known = self.known.lock().await;
        if let Some((asked, missing)) = known.as_ref()
            && asked.elapsed() < HOLDS
        {
            return missing.clone();
        }
        let (log, store) = tokio::join!(
            tokio::time::timeout(ANSWERS_WITHIN, log.look()),
            tokio::time::timeout(ANSWERS_WITHIN, self.store.ping()),
        );
        let mut missing = Vec::new();
        match log {
            Ok(Ok(())) => {}
            Ok(Err(error)) => missing.push(chain(&error)),
            Err(_) => missing.push("Kafka does not answer".to_owned()),
        }
        match store {
            Ok(Ok(())) => {}
            Ok(Err(error)) => missing.push(chain(&error)),
            Err(_) => missing.push("the store does not answer".to_owned()),
        }
        *known = Some((Instant::now(), missing.clone()));
        missing
    }
}
