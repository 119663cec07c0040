//! The audit of a log and a store, from the checkpoints to the report.
//!
//! A pass takes some partitions: it reads what the store holds of them, asks for their ends, and then reads and folds
//! them, a few beside each other, each in a thread of its own and dropped when it is done. By default one pass takes
//! all partitions, and memory must hold all that is stored; more passes need less and read every table once each.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::{NonZeroU16, NonZeroUsize},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{StreamExt, TryStreamExt, stream};
use tidemark_event::{NextOffset, Partition, partition_of};
use tidemark_fold::{FOLD_VERSION, LogSettings, ViewName};
use tidemark_store::{FoldVersion, Generation, GenerationNo, Store, StoredView};
use tokio::task::spawn_blocking;

use crate::{
    AuditError, LogError, LogReader, PartitionAudit, PartitionReport, Progress, Report, Scope,
    Shelves,
    progress::Meter,
    scan::{self, Generations, Pass},
};

/// What is audited, and how much at once.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    /// Which views. Default: all. Some invariants need two, and all agree only among those that are looked at.
    pub views: BTreeSet<ViewName>,
    /// Generations to audit in place of the active ones.
    pub generations: BTreeMap<ViewName, GenerationNo>,
    /// Which conversations and users. Default: all.
    pub scope: Scope,
    /// Partitions read and folded beside each other, a thread each. Default: as many as there are cores.
    pub partitions_at_once: NonZeroUsize,
    /// Partitions whose stored rows are in memory together. Default: all. Fewer read all tables more often.
    pub partitions_per_pass: NonZeroUsize,
    /// The most differences that the report lists; it counts all. Default 100.
    pub differences_listed: usize,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            views: ViewName::ALL.into(),
            generations: BTreeMap::new(),
            scope: Scope::default(),
            partitions_at_once: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            partitions_per_pass: NonZeroUsize::MAX,
            differences_listed: 100,
        }
    }
}

/// Folds the log and holds the views in `store` against it. Reads only, and may run beside workers.
///
/// Costs: each table is read whole, and the log once. To drop the future ends it within a fifth of a second or one
/// question to Kafka.
///
/// # Errors
/// [`AuditError`]: the audit could not be done. What it finds is in the [`Report`].
pub async fn audit(
    log: &LogReader,
    store: &Store,
    settings: &AuditSettings,
    progress: Arc<dyn Progress>,
) -> Result<Report, AuditError> {
    let recorded = store.log_settings().await?.ok_or(AuditError::NoLog)?;
    let log_settings = recorded.settings;
    let partition_count = NonZeroU16::new(log_settings.partitions).ok_or(AuditError::NoLog)?;
    let generations = open(store, settings).await?;
    let partitions: Vec<Partition> = match &settings.scope.conversation {
        Some(conversation) => vec![partition_of(conversation, partition_count)],
        None => (0..i32::from(partition_count.get()))
            .map(Partition::new)
            .collect(),
    };
    let audit = Audit {
        log,
        log_settings,
        settings,
        meter: Meter::new(progress),
        stop: StopOnDrop::default(),
    };
    let first_ends = audit.ends(&partitions).await?;
    for end in &first_ends {
        audit.meter.add_length(NextOffset::START, *end);
    }
    let first_ends: BTreeMap<Partition, NextOffset> =
        partitions.iter().copied().zip(first_ends).collect();
    let mut report = Report::default();
    for partitions in partitions.chunks(settings.partitions_per_pass.get()) {
        let pass = Pass {
            partitions: &partitions.iter().copied().collect(),
            partition_count,
            scope: &settings.scope,
            meter: &audit.meter,
        };
        let shelves = scan::read(&generations, &pass).await?;
        // Only now: whatever was stored when it was read comes from records below these.
        let ends = audit.ends(partitions).await?;
        for (partition, end) in partitions.iter().zip(&ends) {
            let known = first_ends.get(partition).copied();
            audit.meter.add_length(known.unwrap_or(*end), *end);
        }
        let found = stream::iter(shelves.into_iter().zip(ends))
            .map(|((partition, shelves), end)| audit.partition(partition, shelves, end))
            .buffered(settings.partitions_at_once.get());
        let mut found = std::pin::pin!(found);
        while let Some(partition) = found.try_next().await? {
            report.add(partition, settings.differences_listed);
        }
    }
    Ok(report)
}

async fn open(store: &Store, settings: &AuditSettings) -> Result<Generations, AuditError> {
    Ok(Generations {
        roaming: open_view(store, settings).await?,
        sessions: open_view(store, settings).await?,
        inbox: open_view(store, settings).await?,
    })
}

async fn open_view<V: StoredView>(
    store: &Store,
    settings: &AuditSettings,
) -> Result<Option<Generation<V>>, AuditError> {
    let view = V::NAME;
    if !settings.views.contains(&view) {
        return Ok(None);
    }
    let no = match settings.generations.get(&view) {
        Some(no) => *no,
        None => (store.active_generation(view).await?).ok_or(AuditError::NoGeneration { view })?,
    };
    let opened = store.open(no, FoldVersion::new(FOLD_VERSION)).await;
    opened
        .map(Some)
        .map_err(|source| AuditError::Open { view, source })
}

/// What all partitions of an audit share.
struct Audit<'a> {
    log: &'a LogReader,
    log_settings: LogSettings,
    settings: &'a AuditSettings,
    meter: Meter,
    stop: StopOnDrop,
}

/// Tells the threads that read the log that nobody waits for them any more.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Audit<'_> {
    async fn ends(&self, partitions: &[Partition]) -> Result<Vec<NextOffset>, LogError> {
        let (log, set_up) = (self.log.clone(), self.log_settings.partitions);
        let partitions = partitions.to_vec();
        blocking(move || log.ends(set_up, &partitions)).await
    }

    /// Reads and folds one partition.
    async fn partition(
        &self,
        partition: Partition,
        shelves: Shelves,
        end: NextOffset,
    ) -> Result<PartitionReport, AuditError> {
        let log = self.log.clone();
        let (log_settings, scope) = (self.log_settings, self.settings.scope.clone());
        let listed = self.settings.differences_listed;
        let (meter, stop) = (self.meter.clone(), Arc::clone(&self.stop.0));
        blocking(move || {
            let mut audit = PartitionAudit::new(partition, log_settings, shelves, &scope, listed);
            let mut passed = NextOffset::START;
            log.read(partition, end, &stop, |record| {
                let flow = audit.fold(record)?;
                let next = NextOffset::after(record.offset);
                meter.add_read(passed, next);
                passed = next;
                Ok::<_, AuditError>(flow)
            })?;
            meter.add_read(passed, end);
            Ok(audit.finish(end))
        })
        .await
    }
}

/// Runs what blocks off the threads that serve futures.
async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(act).await {
        Ok(done) => done,
        // It cannot have been cancelled: nobody else holds its handle.
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}
