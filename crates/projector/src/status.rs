//! What a worker tells about itself: health, readiness, metrics.
//!
//! A partition's series is there while the partition is assigned and gone when it is revoked: a lag that nobody works
//! off any more would alarm for ever.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tidemark_event::{NextOffset, Partition};
use tidemark_fold::ViewName;

use crate::BatchReport;

/// A partition with lag that has not advanced for this long is not advancing.
const STALLED_AFTER: Duration = Duration::from_secs(60);

/// A worker's state, shared between its parts and whoever asks.
#[derive(Debug, Clone)]
pub struct Status {
    view: ViewName,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The worker is a member of its group: it has been told what it is assigned, be it nothing.
    is_member: bool,
    partitions: BTreeMap<Partition, PartitionStatus>,
    totals: Totals,
    fatal: Option<String>,
    #[cfg(feature = "planted-faults")]
    kept: KeptMemory,
}

/// What a worker has kept in memory of partitions that it no longer has.
#[cfg(feature = "planted-faults")]
#[derive(Default)]
struct KeptMemory(BTreeMap<Partition, Box<dyn std::any::Any + Send>>);

#[cfg(feature = "planted-faults")]
impl std::fmt::Debug for KeptMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// One assigned partition.
#[derive(Debug, Clone)]
pub struct PartitionStatus {
    /// What has been folded and flushed.
    pub next: Option<NextOffset>,
    /// The end of the log, as last seen.
    pub log_end: Option<NextOffset>,
    /// When `next` last moved, or was first known.
    pub advanced_at: Instant,
    /// Why the partition stands still, if it does.
    pub stopped: Option<String>,
    /// Failed attempts in a row to reach the store or the dead-letter topic.
    pub failed_attempts: u64,
}

/// Counters since the worker started.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Batches flushed.
    pub batches: u64,
    /// Records folded.
    pub records: u64,
    /// All reports added up.
    pub report: BatchReport,
}

/// Whether a worker does its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Assigned, and advancing or at the end.
    Ready,
    /// Not, and why.
    NotReady(String),
}

impl Status {
    /// The status of a worker that has not joined its group yet.
    pub fn new(view: ViewName) -> Self {
        Self {
            view,
            state: Arc::default(),
        }
    }

    /// The view it is about.
    pub fn view(&self) -> ViewName {
        self.view
    }

    pub(crate) fn assigned(&self, partitions: impl IntoIterator<Item = Partition>) {
        let mut state = self.lock();
        state.is_member = true;
        for partition in partitions {
            state.partitions.insert(
                partition,
                PartitionStatus {
                    next: None,
                    log_end: None,
                    advanced_at: Instant::now(),
                    stopped: None,
                    failed_attempts: 0,
                },
            );
        }
    }

    pub(crate) fn revoked(&self, partition: Partition) {
        self.lock().partitions.remove(&partition);
    }

    pub(crate) fn update(&self, partition: Partition, update: impl FnOnce(&mut PartitionStatus)) {
        if let Some(status) = self.lock().partitions.get_mut(&partition) {
            update(status);
        }
    }

    #[cfg(feature = "planted-faults")]
    pub(crate) fn keep(&self, partition: Partition, memory: Box<dyn std::any::Any + Send>) {
        self.lock().kept.0.insert(partition, memory);
    }

    #[cfg(feature = "planted-faults")]
    pub(crate) fn kept(&self, partition: Partition) -> Option<Box<dyn std::any::Any + Send>> {
        self.lock().kept.0.remove(&partition)
    }

    pub(crate) fn count(&self, records: u64, report: &BatchReport) {
        let mut state = self.lock();
        state.totals.batches += 1;
        state.totals.records += records;
        state.totals.report += *report;
    }

    pub(crate) fn failed(&self, why: String) {
        self.lock().fatal = Some(why);
    }

    /// The assigned partitions.
    pub fn partitions(&self) -> BTreeMap<Partition, PartitionStatus> {
        self.lock().partitions.clone()
    }

    /// Counters since the worker started.
    pub fn totals(&self) -> Totals {
        self.lock().totals
    }

    /// Whether the worker does its work.
    pub fn readiness(&self) -> Readiness {
        let state = self.lock();
        if let Some(why) = &state.fatal {
            return Readiness::NotReady(why.clone());
        }
        if !state.is_member {
            return Readiness::NotReady("not assigned yet".to_owned());
        }
        for (partition, status) in &state.partitions {
            if let Some(why) = &status.stopped {
                return Readiness::NotReady(format!("partition {partition} stands still: {why}"));
            }
            if status.is_stalled() {
                return Readiness::NotReady(format!(
                    "partition {partition} has lag and does not advance"
                ));
            }
        }
        Readiness::Ready
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every update leaves the state whole, so that a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartitionStatus {
    /// Records between the view and the end of the log, as last seen.
    pub fn lag(&self) -> Option<u64> {
        let behind = self.log_end?.get().saturating_sub(self.next?.get());
        Some(u64::try_from(behind).unwrap_or(0))
    }

    pub(crate) fn advance(&mut self, next: NextOffset) {
        if self.next != Some(next) {
            self.next = Some(next);
            self.advanced_at = Instant::now();
        }
        self.log_end = self.log_end.max(Some(next));
    }

    fn is_stalled(&self) -> bool {
        let has_lag = self.lag().is_none_or(|lag| lag > 0);
        has_lag && self.advanced_at.elapsed() > STALLED_AFTER
    }
}
