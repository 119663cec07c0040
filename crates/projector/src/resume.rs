//! Decides where a partition goes on: from the view's checkpoint, or not at all.
//!
//! The group's committed offset decides nothing, and nothing is ever skipped. Reading begins at the checkpoint's last
//! record, not after it: if that record is no longer the one that was folded, the topic was made anew.

use tidemark_event::{Fingerprint, LogTime, NextOffset, Offset, Partition};
use tidemark_store::{Checkpoint, LastRecord};

use crate::RawRecord;

/// Why a worker will not resume a partition. Each stops it: skipping is never a fallback.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// Records that the view has not folded are gone from the log.
    #[error(
        "partition {partition}: the next offset is {next}, but the log now starts at {start}: \
         restore the topic, or rebuild the view from what is left"
    )]
    LogStartsLater {
        /// The partition.
        partition: Partition,
        /// What the view would read next.
        next: NextOffset,
        /// Where the log starts.
        start: Offset,
    },
    /// The log is shorter than what the view has folded.
    #[error(
        "partition {partition}: the next offset is {next}, but the log ends at {end}: \
         was the topic created anew, or lost by an unclean election?"
    )]
    LogEndsEarlier {
        /// The partition.
        partition: Partition,
        /// What the view would read next.
        next: NextOffset,
        /// Where the log ends.
        end: NextOffset,
    },
    /// The newest record that the view has folded is another one now.
    #[error(
        "partition {partition}: the record at offset {last} is not the one this view folded \
         (fingerprint {wanted}, now {found}): was the topic created anew?"
    )]
    OtherRecord {
        /// The partition.
        partition: Partition,
        /// The record's offset.
        last: Offset,
        /// The fingerprint that the checkpoint keeps.
        wanted: Fingerprint,
        /// What the log has now.
        found: FoundRecord,
    },
    /// Kafka refused the offset after all.
    #[error(
        "partition {partition}: the log does not have offset {start} any more: restore the topic, or rebuild the view"
    )]
    OutOfRange {
        /// The partition.
        partition: Partition,
        /// The offset asked for.
        start: Offset,
    },
}

/// What stands in the log where a folded record should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundRecord {
    /// A record with another fingerprint.
    Other(Fingerprint),
    /// No record: the log goes on later.
    Hole,
}

impl std::fmt::Display for FoundRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Other(fingerprint) => fingerprint.fmt(f),
            Self::Hole => f.write_str("none"),
        }
    }
}

/// Where a view stands in a partition that it has not begun.
const NOWHERE: Checkpoint = Checkpoint {
    next_offset: NextOffset::START,
    last: None,
    log_time: LogTime::START,
};

/// How a partition is taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resume {
    /// The offset to read from.
    pub start: Offset,
    /// What the view has folded.
    pub checkpoint: Checkpoint,
    /// The record that must come first, being the last one folded.
    awaited: Option<LastRecord>,
}

impl Resume {
    /// Goes on from `checkpoint`, or from the beginning, in a log that holds `start..end`.
    ///
    /// # Errors
    /// [`ResumeError`] where the log does not hold what comes next.
    pub fn plan(
        partition: Partition,
        checkpoint: Option<Checkpoint>,
        start: Offset,
        end: NextOffset,
    ) -> Result<Self, ResumeError> {
        let checkpoint = checkpoint.unwrap_or(NOWHERE);
        let next = checkpoint.next_offset;
        if next.get() < start.get() {
            return Err(ResumeError::LogStartsLater {
                partition,
                next,
                start,
            });
        }
        if next > end {
            return Err(ResumeError::LogEndsEarlier {
                partition,
                next,
                end,
            });
        }
        // Where the log starts just at the next offset, the last record is gone and cannot be looked at.
        let last = checkpoint.last.filter(|last| last.offset >= start);
        Ok(Self {
            start: last.map_or(Offset::new(next.get()), |last| last.offset),
            checkpoint,
            awaited: last,
        })
    }

    /// Holds the first records that arrive against the last one folded, and keeps what is still to be folded.
    ///
    /// # Errors
    /// [`ResumeError::OtherRecord`].
    pub fn admit(
        &mut self,
        partition: Partition,
        records: Vec<RawRecord>,
    ) -> Result<Vec<RawRecord>, ResumeError> {
        let Some(LastRecord {
            offset: last,
            fingerprint: wanted,
        }) = self.awaited
        else {
            return Ok(records);
        };
        let Some(first) = records.first() else {
            return Ok(records);
        };
        let found = if first.offset == last {
            FoundRecord::Other(first.fingerprint())
        } else {
            FoundRecord::Hole
        };
        if found != FoundRecord::Other(wanted) {
            return Err(ResumeError::OtherRecord {
                partition,
                last,
                wanted,
                found,
            });
        }
        self.awaited = None;
        let next = self.checkpoint.next_offset;
        Ok(records
            .into_iter()
            .filter(|record| next.admits(record.offset))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTITION: Partition = Partition::new(3);

    fn record(offset: i64, text: &str) -> RawRecord {
        RawRecord {
            offset: Offset::new(offset),
            append_time: 1_000 + offset,
            key: Some(b"c".to_vec()),
            value: Some(text.as_bytes().to_vec()),
        }
    }

    fn folded_up_to(record: &RawRecord) -> Checkpoint {
        Checkpoint {
            next_offset: NextOffset::after(record.offset),
            last: Some(LastRecord {
                offset: record.offset,
                fingerprint: record.fingerprint(),
            }),
            log_time: LogTime::from_millis(record.append_time),
        }
    }

    fn plan(checkpoint: Option<Checkpoint>, start: i64, end: i64) -> Result<Resume, ResumeError> {
        Resume::plan(
            PARTITION,
            checkpoint,
            Offset::new(start),
            NextOffset::new(end),
        )
    }

    #[test]
    fn a_view_without_a_checkpoint_begins_at_the_beginning_and_nowhere_else() {
        assert_eq!(plan(None, 0, 10).unwrap().start, Offset::new(0));
        assert!(matches!(
            plan(None, 1, 10),
            Err(ResumeError::LogStartsLater { .. })
        ));
    }

    #[test]
    fn a_log_that_lost_what_comes_next_stops_the_worker_with_both_offsets() {
        let checkpoint = folded_up_to(&record(499, "a"));
        let error = plan(Some(checkpoint), 800, 900).unwrap_err().to_string();
        assert!(error.contains("500") && error.contains("800"), "{error}");
        let error = plan(Some(checkpoint), 0, 30).unwrap_err().to_string();
        assert!(error.contains("500") && error.contains("30"), "{error}");
    }

    #[test]
    fn reading_begins_at_the_last_folded_record_which_is_not_folded_again() {
        let mut resume = plan(Some(folded_up_to(&record(7, "a"))), 0, 10).unwrap();
        assert_eq!(resume.start, Offset::new(7));
        let admitted = resume
            .admit(PARTITION, vec![record(7, "a"), record(8, "b")])
            .unwrap();
        assert_eq!(admitted, [record(8, "b")]);
        assert_eq!(
            resume.admit(PARTITION, vec![record(9, "c")]).unwrap(),
            [record(9, "c")]
        );
    }

    #[test]
    fn a_topic_made_anew_is_told_by_its_record() {
        let checkpoint = folded_up_to(&record(7, "a"));
        for records in [vec![record(7, "other")], vec![record(9, "c")]] {
            let mut resume = plan(Some(checkpoint), 0, 10).unwrap();
            assert!(matches!(
                resume.admit(PARTITION, records),
                Err(ResumeError::OtherRecord { .. })
            ));
        }
    }

    #[test]
    fn a_log_that_starts_just_at_the_next_offset_goes_on() {
        let mut resume = plan(Some(folded_up_to(&record(7, "a"))), 8, 10).unwrap();
        assert_eq!(resume.start, Offset::new(8));
        assert_eq!(
            resume.admit(PARTITION, vec![record(8, "b")]).unwrap(),
            [record(8, "b")]
        );
    }
}
