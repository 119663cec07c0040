//! How far the views are behind the log.

use std::collections::BTreeMap;

use serde::Serialize;
use tidemark_event::{NextOffset, Partition, rfc3339};
use tidemark_fold::ViewName;
use tidemark_store::{Checkpoint, RecordedLog, Store, StoreError};

use crate::kafka::{Cluster, ClusterError};

/// How far every generation of every view is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Lags {
    pub(crate) topic: String,
    pub(crate) partitions: u16,
    pub(crate) generations: Vec<GenerationLag>,
}

/// How far one generation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct GenerationLag {
    pub(crate) view: ViewName,
    pub(crate) generation: u16,
    /// Readers use it.
    pub(crate) active: bool,
    pub(crate) state: &'static str,
    pub(crate) fold_version: u16,
    /// Records between it and the log's end, in all partitions together. Holes in the offsets, such as the markers of
    /// transactions, count as records until they are passed.
    pub(crate) lag: u64,
    pub(crate) partitions: Vec<PartitionLag>,
}

/// How far a generation is in one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PartitionLag {
    pub(crate) partition: Partition,
    /// The record to be folded next.
    pub(crate) next_offset: NextOffset,
    /// Where the log ended when it was looked at.
    pub(crate) log_end: NextOffset,
    pub(crate) lag: u64,
    /// The log time up to which it is folded; none where it has not begun.
    pub(crate) log_time: Option<String>,
}

/// Why nobody can say how far the views are.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LagError {
    #[error(transparent)]
    Log(#[from] RecordedLogError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Kafka(#[from] ClusterError),
}

/// The store does not tell its log: it is set up for none, or does not answer.
#[derive(Debug, thiserror::Error)]
#[error("the keyspace {keyspace} does not tell which log it is for: has `tidemark setup` run?")]
pub(crate) struct RecordedLogError {
    keyspace: String,
    source: Option<StoreError>,
}

/// The log that the store is set up for.
///
/// # Errors
/// [`RecordedLogError`].
pub(crate) async fn recorded_log(store: &Store) -> Result<RecordedLog, RecordedLogError> {
    let failed = |source| RecordedLogError {
        keyspace: store.keyspace().to_owned(),
        source,
    };
    match store.log_settings().await {
        Ok(Some(log)) => Ok(log),
        Ok(None) => Err(failed(None)),
        Err(error) => Err(failed(Some(error))),
    }
}

/// Looks at all views. The log's end is read after the checkpoints, so that no lag is too small.
///
/// # Errors
/// [`LagError`].
pub(crate) async fn look(store: &Store, cluster: &Cluster) -> Result<Lags, LagError> {
    let log = recorded_log(store).await?;
    let mut found = Vec::new();
    for view in ViewName::ALL {
        let active = store.active_generation(view).await?;
        for generation in store.generations(view).await? {
            let checkpoints = store.checkpoints(view, generation.no).await?;
            found.push((view, active == Some(generation.no), generation, checkpoints));
        }
    }
    let partitions = log.settings.partitions;
    let ends = cluster.ends(&log.topic, partitions).await?;
    let generations = found
        .into_iter()
        .map(|(view, active, generation, checkpoints)| {
            let partitions = compare(&checkpoints, &ends);
            GenerationLag {
                view,
                generation: generation.no.get(),
                active,
                state: generation.state.as_str(),
                fold_version: generation.fold_version.get(),
                lag: partitions.iter().map(|partition| partition.lag).sum(),
                partitions,
            }
        });
    Ok(Lags {
        generations: generations.collect(),
        topic: log.topic,
        partitions,
    })
}

/// A view that has not begun a partition is to begin at its start.
fn compare(
    checkpoints: &BTreeMap<Partition, Checkpoint>,
    ends: &BTreeMap<Partition, NextOffset>,
) -> Vec<PartitionLag> {
    let compare = |(partition, end): (&Partition, &NextOffset)| {
        let checkpoint = checkpoints.get(partition);
        let next_offset = checkpoint.map_or(NextOffset::START, |checkpoint| checkpoint.next_offset);
        let behind = end.get().saturating_sub(next_offset.get());
        let log_time = checkpoint.filter(|checkpoint| checkpoint.last.is_some());
        PartitionLag {
            partition: *partition,
            next_offset,
            log_end: *end,
            lag: u64::try_from(behind).unwrap_or_default(),
            log_time: log_time.and_then(|checkpoint| rfc3339(checkpoint.log_time.millis())),
        }
    };
    ends.iter().map(compare).collect()
}

impl Lags {
    /// The lags of the generations that readers use.
    pub(crate) fn active(&self) -> impl Iterator<Item = &GenerationLag> {
        self.generations
            .iter()
            .filter(|generation| generation.active)
    }
}

#[cfg(test)]
mod tests {
    use tidemark_event::{Fingerprint, LogTime, Offset};
    use tidemark_store::LastRecord;

    use super::*;

    #[test]
    fn a_lag_is_what_lies_between_a_checkpoint_and_the_end() {
        let ends = BTreeMap::from(
            [0, 1, 2].map(|partition| (Partition::new(partition), NextOffset::new(10))),
        );
        let checkpoint = Checkpoint {
            next_offset: NextOffset::new(8),
            last: Some(LastRecord {
                offset: Offset::new(6),
                fingerprint: Fingerprint::from_i64(1),
            }),
            log_time: LogTime::from_millis(1_000),
        };
        let ahead = Checkpoint {
            next_offset: NextOffset::new(12),
            last: None,
            ..checkpoint
        };
        let checkpoints =
            BTreeMap::from([(Partition::new(0), checkpoint), (Partition::new(1), ahead)]);
        let compared = compare(&checkpoints, &ends);
        let lags: Vec<_> = compared
            .iter()
            .map(|lag| (lag.lag, lag.log_time.as_deref()))
            .collect();
        assert_eq!(
            lags,
            [(2, Some("1970-01-01T00:00:01Z")), (0, None), (10, None)]
        );
    }
}
