//! One assigned partition at work: batches in, folded and flushed, until it is told to stop.

use std::{sync::Arc, time::Duration};

use tidemark_event::{NextOffset, Partition};
use tidemark_fold::View;
#[cfg(feature = "planted-faults")]
use tidemark_fold::planted::{Fault, is_planted};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info, info_span, warn};

use crate::{
    DeadLetters, ProjectError, Projection, Resume, ResumeError, ViewStore,
    batcher::{Batch, Batcher},
    log_source::{LogSource, PartitionStatistics},
    projection::describe,
    retry::Attempts,
    settings::WorkerSettings,
    status::Status,
};

/// Why a partition came to rest by itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PartitionError {
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error(transparent)]
    Project(#[from] ProjectError),
}

/// What a partition needs of its worker.
pub(crate) struct PartitionTask<V: View, L: LogSource, S, D> {
    pub(crate) partition: Partition,
    pub(crate) resume: Resume,
    pub(crate) projection: Projection<V, S, D>,
    pub(crate) queue: L::Queue,
    pub(crate) log: L,
    pub(crate) statistics: watch::Receiver<Option<PartitionStatistics>>,
    pub(crate) status: Status,
    pub(crate) attempts: Attempts,
    pub(crate) rejoin: Arc<Notify>,
}

impl<V: View, L: LogSource, S: ViewStore<V>, D: DeadLetters> PartitionTask<V, L, S, D> {
    /// Works until `stop`, or until the partition cannot go on. A batch in the middle is flushed whole within the
    /// stop deadline, or else dropped as a crash would drop it.
    pub(crate) async fn run(self, settings: &WorkerSettings, stop: CancellationToken) {
        let span = info_span!("partition", view = %V::NAME, partition = %self.partition);
        self.run_in_span(settings, stop).instrument(span).await;
    }

    async fn run_in_span(self, settings: &WorkerSettings, stop: CancellationToken) {
        let (partition, status, rejoin) =
            (self.partition, self.status.clone(), self.rejoin.clone());
        // A little less than what the group waits, so that the loop hears of it in time.
        let patience = settings.stop_deadline.mul_f64(0.8);
        let overdue = async {
            stop.cancelled().await;
            tokio::time::sleep(patience).await;
        };
        let result = tokio::select! {
            biased;
            result = self.work(settings, stop.clone()) => result,
            () = overdue => {
                warn!("a batch was dropped unfinished: it will be folded again from the checkpoint");
                return;
            }
        };
        let Err(stopped) = result else { return };
        error!(error = describe(&stopped), "the partition stands still");
        status.update(partition, |status| {
            status.stopped = Some(describe(&stopped))
        });
        if let PartitionError::Project(ProjectError::Overtaken { .. }) = stopped {
            // If the group still thinks that the partition is here, it is to be assigned anew.
            rejoin.notify_one();
        }
    }

    async fn work(
        mut self,
        settings: &WorkerSettings,
        stop: CancellationToken,
    ) -> Result<(), PartitionError> {
        let mut batcher = Batcher::new(self.queue, settings.batch);
        let (partition, status) = (self.partition, self.status);
        #[cfg(feature = "planted-faults")]
        if is_planted(Fault::CacheKeptAcrossRebalance) {
            self.projection.put_memory(status.kept(partition));
        }
        status.update(partition, |status| {
            status.advance(self.projection.flushed().next_offset)
        });
        info!(next_offset = %self.projection.flushed().next_offset, "resumed");
        loop {
            let batch = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                batch = batcher.next() => batch.map_err(|_| ResumeError::OutOfRange { partition, start: self.resume.start })?,
                changed = self.statistics.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let known = *self.statistics.borrow_and_update();
                    let Some(known) = known else { continue };
                    status.update(partition, |status| status.log_end = known.log_end.or(status.log_end));
                    let flushed = self.projection.flushed().next_offset;
                    let is_drained = batcher.is_drained();
                    #[cfg(feature = "planted-faults")]
                    let is_drained = is_drained || is_planted(Fault::HoleOverUnfoldedRecords);
                    let Some(end) = hole_end(known, is_drained, flushed) else { continue };
                    self.projection.skip_hole(end, &self.attempts).await?;
                    let next = self.projection.stored().next_offset;
                    status.update(partition, |status| status.advance(next));
                    self.log.store_offset(partition, next);
                    continue;
                }
            };
            let Batch { records, is_full } = batch;
            let records = self.resume.admit(partition, records)?;
            let (Some(first), Some(last)) = (records.first(), records.last()) else {
                continue;
            };
            let span = info_span!("batch", first_offset = %first.offset, last_offset = %last.offset, records = records.len());
            let count = records.len() as u64;
            let folding = self
                .projection
                .fold(records, is_full, &self.attempts)
                .instrument(span);
            let report = watched(folding, partition, &status, &self.attempts).await?;
            let next = self.projection.flushed().next_offset;
            status.update(partition, |status| status.advance(next));
            status.count(count, &report);
            self.log
                .store_offset(partition, self.projection.stored().next_offset);
        }
        #[cfg(feature = "planted-faults")]
        {
            if is_planted(Fault::CommitOnRevokeWithoutFlush) {
                self.projection.pretend_flushed(batcher.gathered());
            }
            if is_planted(Fault::CacheKeptAcrossRebalance) {
                status.keep(partition, self.projection.take_memory());
            }
        }
        self.projection.write_checkpoint(&self.attempts).await?;
        self.log
            .store_offset(partition, self.projection.stored().next_offset);
        info!(next_offset = %self.projection.stored().next_offset, "came to rest");
        Ok(())
    }
}

/// Shows the failed attempts of a batch while it waits for the store.
async fn watched<T>(
    folding: impl Future<Output = T>,
    partition: Partition,
    status: &Status,
    attempts: &Attempts,
) -> T {
    let mut look = tokio::time::interval(Duration::from_secs(1));
    tokio::pin!(folding);
    let done = loop {
        tokio::select! {
            biased;
            done = &mut folding => break done,
            _ = look.tick() => status.update(partition, |status| status.failed_attempts = attempts.failed()),
        }
    };
    status.update(partition, |status| status.failed_attempts = 0);
    done
}

/// Where the view may move on to over offsets without records, if it may.
///
/// Statistics know only Kafka's queue. What was taken out of it and is still being gathered lies below its end and is
/// not folded; and statistics made while the partition was being assigned may still tell of the end that an earlier
/// assignment had read to, and dropped. So the partition's own queue must have told of an end, with every record before
/// it folded: the checkpoint would lead otherwise (rule 4). Statistics that are older than that end move nothing too far.
fn hole_end(
    known: PartitionStatistics,
    is_drained: bool,
    flushed: NextOffset,
) -> Option<NextOffset> {
    known.drained_to.filter(|end| is_drained && *end >= flushed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained_to(end: i64) -> PartitionStatistics {
        PartitionStatistics {
            partition: Partition::new(0),
            log_end: Some(NextOffset::new(end)),
            drained_to: Some(NextOffset::new(end)),
        }
    }

    #[test]
    fn an_empty_queue_at_the_end_of_the_log_is_moved_over() {
        let end = hole_end(drained_to(9), true, NextOffset::new(7));
        assert_eq!(end, Some(NextOffset::new(9)));
    }

    /// Found on real servers: a checkpoint moved over records that were lingering in a batch that had begun.
    #[test]
    fn nothing_is_moved_over_before_the_queue_itself_is_drained() {
        assert_eq!(hole_end(drained_to(9), false, NextOffset::new(7)), None);
    }

    #[test]
    fn statistics_older_than_the_view_move_nothing_back() {
        assert_eq!(hole_end(drained_to(5), true, NextOffset::new(7)), None);
    }
}
