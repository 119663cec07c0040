//! A worker of one view: a member of the view's consumer group that folds the partitions it is assigned.
//!
//! Three parts. A thread polls the consumer's main queue, where rebalances, errors and statistics are served. This
//! loop turns them into partitions that begin and come to rest. A task a partition does the work. The loop owns the
//! tasks; nothing else knows them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rdkafka::{consumer::Consumer as _, error::KafkaError};
use tidemark_event::LOG_TOPIC;
use tidemark_fold::{View, ViewName};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    DeadLetters, ViewStore,
    consumer::{LogConsumer, join},
    log_source::GroupEvent,
    owner::Owner,
    poll::{PollEnd, poll},
    settings::WorkerSettings,
    status::Status,
};

/// How long one question to Kafka may take.
pub(crate) const KAFKA_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two questions that failed.
pub(crate) const KAFKA_PAUSE: Duration = Duration::from_millis(500);

/// Why a worker ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The consumer could not be made: the settings are wrong.
    #[error("cannot make a consumer for view {view}")]
    Consumer {
        /// The view.
        view: ViewName,
        /// librdkafka's reason.
        source: KafkaError,
    },
    /// The topic has another number of partitions than the log's settings say.
    #[error(
        "{LOG_TOPIC} has {found} partitions, but the log was set up with {wanted}: keys have moved, and order with them. \
         Restore the topic; a log with more partitions is a new log"
    )]
    PartitionCount {
        /// Recorded at setup.
        wanted: u16,
        /// What the topic has.
        found: usize,
    },
    /// The client cannot go on, for instance because another worker has the same static member id.
    #[error("the consumer of view {view} failed for good: {reason}")]
    Fatal {
        /// The view.
        view: ViewName,
        /// librdkafka's reason.
        reason: String,
    },
}

/// A worker of one view.
pub struct Worker<S, D> {
    pub(crate) settings: WorkerSettings,
    group: String,
    pub(crate) store: S,
    pub(crate) dead_letters: D,
    pub(crate) status: Status,
}

impl<S, D: DeadLetters> Worker<S, D> {
    /// A worker in the group `group`, which is the view generation's own.
    pub fn new(
        settings: WorkerSettings,
        group: impl Into<String>,
        store: S,
        dead_letters: D,
        status: Status,
    ) -> Self {
        Self {
            settings,
            group: group.into(),
            store,
            dead_letters,
            status,
        }
    }

    /// Works until `shutdown`, then flushes, leaves the group and returns, all within the stop deadline.
    ///
    /// # Errors
    /// [`WorkerError`]: the worker cannot go on. A partition that cannot go on does not end the worker: the others
    /// do, and the status says which stands still and why.
    pub async fn run<V>(self, shutdown: CancellationToken) -> Result<(), WorkerError>
    where
        V: View,
        S: ViewStore<V>,
    {
        let (events_in, events) = mpsc::unbounded_channel();
        let failed = |source| WorkerError::Consumer {
            view: V::NAME,
            source,
        };
        let consumer = join(&self.settings, &self.group, events_in).map_err(failed)?;
        let checked = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            checked = self.check_partitions::<V>(&consumer) => checked,
        };
        checked?;
        info!(view = %V::NAME, group = self.group, "joining the group");

        let stop_polling = CancellationToken::new();
        let runtime = tokio::runtime::Handle::current();
        let (polling, stop) = (consumer.clone(), stop_polling.clone());
        let rejoin = Arc::new(Notify::new());
        let asked_to_rejoin = rejoin.clone();
        let poller = std::thread::Builder::new()
            .name(format!("poll-{}", V::NAME))
            .spawn(move || runtime.block_on(poll(polling, stop, asked_to_rejoin)))
            .map_err(|error| WorkerError::Fatal {
                view: V::NAME,
                reason: error.to_string(),
            })?;
        let mut poller = tokio::task::spawn_blocking(move || poller.join());

        let status = self.status.clone();
        let deadline = self.settings.stop_deadline;
        let mut owner = Owner::new(
            self.settings,
            self.store,
            self.dead_letters,
            self.status,
            consumer.clone(),
            events,
            rejoin,
        );
        let ended = tokio::select! {
            () = shutdown.cancelled() => None,
            () = owner.serve::<V>(shutdown.clone()) => None,
            ended = &mut poller => Some(ended),
        };
        info!(view = %V::NAME, "stopping");
        let stopping_since = Instant::now();
        owner.stop_all().await;
        let mut events = owner.into_events();
        stop_polling.cancel();
        let is_polling = ended.is_none();
        let result = match ended {
            Some(Ok(Ok(PollEnd::Fatal(reason)))) => {
                status.failed(reason.clone());
                Err(WorkerError::Fatal {
                    view: V::NAME,
                    reason,
                })
            }
            Some(_) | None => Ok(()),
        };
        // Leaving the group revokes what is still assigned; all of it has come to rest.
        let answers = tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                match event {
                    GroupEvent::Assigned { starts, .. } => drop(starts.send(Vec::new())),
                    GroupEvent::Revoked { at_rest, .. } => drop(at_rest.send(())),
                    GroupEvent::Started { .. } | GroupEvent::Statistics(_) => {}
                }
            }
        });
        let leave = tokio::task::spawn_blocking(move || drop(consumer));
        let left = async {
            if is_polling {
                let _ = (&mut poller).await;
            }
            let _ = leave.await;
        };
        let rest = deadline
            .saturating_sub(stopping_since.elapsed())
            .max(Duration::from_secs(1));
        if tokio::time::timeout(rest, left).await.is_err() {
            warn!(view = %V::NAME, "Kafka did not let the worker leave its group in time");
        }
        answers.abort();
        result
    }

    /// Waits for Kafka to tell how many partitions the log has, and holds that against the log's settings.
    async fn check_partitions<V>(&self, consumer: &Arc<LogConsumer>) -> Result<(), WorkerError>
    where
        V: View,
        S: ViewStore<V>,
    {
        let wanted = self.store.log_settings().partitions;
        loop {
            let asked = consumer.clone();
            let metadata = tokio::task::spawn_blocking(move || {
                asked.fetch_metadata(Some(LOG_TOPIC), KAFKA_TIMEOUT)
            })
            .await;
            match metadata {
                Ok(Ok(metadata)) => {
                    let found = metadata
                        .topics()
                        .first()
                        .map_or(0, |topic| topic.partitions().len());
                    if found == usize::from(wanted) {
                        return Ok(());
                    }
                    if found > 0 {
                        return Err(WorkerError::PartitionCount { wanted, found });
                    }
                    warn!(
                        topic = LOG_TOPIC,
                        "the log's topic is not there: run `tidemark setup`"
                    );
                }
                Ok(Err(error)) => warn!(%error, "Kafka did not answer, trying again"),
                Err(error) => warn!(%error, "a question to Kafka was cut off, trying again"),
            }
            tokio::time::sleep(KAFKA_PAUSE).await;
        }
    }
}
