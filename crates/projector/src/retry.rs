//! Tries again what the store or Kafka could not do just now, for as long as the partition is ours.
//!
//! A worker whose store is away keeps its partitions and waits: nobody else could do better, and the group must not
//! start to shuffle. The wait ends when the caller drops the future, on revocation or shutdown.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tidemark_store::StoreError;
use tracing::{info, warn};

use crate::{DeadLetterError, ProjectError, projection::describe};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How many attempts in a row have failed, for whoever reports a worker's health. Shared by clones.
#[derive(Debug, Clone)]
pub struct Attempts {
    failed: Arc<AtomicU64>,
    /// The state of the generator that makes pauses differ.
    jitter: Arc<AtomicU64>,
}

impl Default for Attempts {
    fn default() -> Self {
        Self::seeded(rand::random())
    }
}

impl Attempts {
    /// Attempts whose pauses follow from `seed`, for runs that are to be repeated exactly.
    pub fn seeded(seed: u64) -> Self {
        Self {
            failed: Arc::default(),
            jitter: Arc::new(AtomicU64::new(seed)),
        }
    }

    /// A number from 0.5 to 1 that differs from call to call: a step of Weyl's sequence, mixed.
    fn jitter(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.jitter.fetch_add(STEP, Ordering::Relaxed);
        let mixed = (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40;
        0.5 + mixed as f64 / f64::from(1_u32 << 25)
    }

    /// Failed attempts since the last success.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn note_failure(&self) -> u64 {
        self.failed.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn note_success(&self) {
        let failed = self.failed.swap(0, Ordering::Relaxed);
        if failed > 0 {
            info!(failed, "went on after failed attempts");
        }
    }
}

/// Does `act` until it succeeds. A failure that would only repeat itself ends it.
pub(crate) async fn until_done<T, F>(
    attempts: &Attempts,
    act: &'static str,
    mut attempt: impl FnMut() -> F,
) -> Result<T, ProjectError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut pause = Pause::default();
    loop {
        match attempt().await {
            Ok(done) => {
                attempts.note_success();
                return Ok(done);
            }
            Err(error) if error.is_transient() => {
                let failed = attempts.note_failure();
                warn!(
                    act,
                    failed,
                    error = describe(&error),
                    "the store did not answer, trying again"
                );
            }
            Err(source) => return Err(ProjectError::Store { act, source }),
        }
        pause.wait(attempts).await;
    }
}

/// Sends dead letters until they are all acknowledged.
pub(crate) async fn until_sent<F>(attempts: &Attempts, mut send: impl FnMut() -> F)
where
    F: Future<Output = Result<(), DeadLetterError>>,
{
    let mut pause = Pause::default();
    while let Err(error) = send().await {
        let failed = attempts.note_failure();
        tracing::error!(
            failed,
            error = describe(&error),
            "dead letters cannot be sent: the checkpoint waits for them"
        );
        pause.wait(attempts).await;
    }
    attempts.note_success();
}

/// The pause between two attempts: longer each time, and never quite the same, so that workers do not come back all at
/// once.
#[derive(Debug)]
pub(crate) struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pause {
    /// Sleeps between half the pause and the whole, and doubles it up to its bound.
    pub(crate) async fn wait(&mut self, attempts: &Attempts) {
        let jittered = self.0.mul_f64(attempts.jitter());
        tokio::time::sleep(jittered).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}
