//! What the log of a run holds, and what the naive model says of it.
//!
//! Events are drawn as the model's own tests draw them. Between them stand records that nobody can decode, and offsets
//! without records, as transaction markers leave them: also at the end of the log.

use std::collections::BTreeSet;

use tidemark_event::{ConversationId, LogTime, NextOffset, Offset, Partition, encode};
use tidemark_model::{Logged, Model, Verdict, generate::Cast};
use tidemark_projector::RawRecord;
use tidemark_store::{Checkpoint, LastRecord};

use crate::random::Random;

/// Partitions of every simulated log.
pub(crate) const PARTITIONS: u16 = 2;

/// The whole log of a run.
pub(crate) struct Workload {
    pub(crate) partitions: Vec<PartitionLog>,
}

/// One partition of it.
pub(crate) struct PartitionLog {
    pub(crate) partition: Partition,
    /// What can be decoded.
    pub(crate) logged: Vec<Logged>,
    /// Every record, in order.
    pub(crate) records: Vec<RawRecord>,
    /// Records that nobody can decode.
    pub(crate) garbage: BTreeSet<Offset>,
    /// The end of the log, offsets without records included.
    pub(crate) end: NextOffset,
    pub(crate) model: Model,
}

impl Workload {
    /// The log that `seed` stands for, of `events` events in each partition.
    pub(crate) fn of(seed: u64, events: usize) -> Self {
        let partitions = (0..i32::from(PARTITIONS))
            .map(|number| {
                let seed = seed * u64::from(PARTITIONS) + number.unsigned_abs() as u64;
                PartitionLog::of(Partition::new(number), seed, events)
            })
            .collect();
        Self { partitions }
    }

    pub(crate) fn partition(&self, partition: Partition) -> &PartitionLog {
        &self.partitions[index(partition)]
    }

    pub(crate) fn events(&self) -> usize {
        self.partitions
            .iter()
            .map(|partition| partition.logged.len())
            .sum()
    }
}

/// A partition's place in lists of them.
pub(crate) fn index(partition: Partition) -> usize {
    usize::try_from(partition.get()).unwrap()
}

impl PartitionLog {
    fn of(partition: Partition, seed: u64, events: usize) -> Self {
        let mut random = Random::new(seed);
        let mut logged = Cast::SMALL.log_from_seed(seed, events);
        let (mut records, mut garbage) = (Vec::new(), BTreeSet::new());
        let mut shift = 0;
        let mut newest_time = 0;
        for event in &mut logged {
            let mut offset = event.offset.get() + shift;
            if random.chance(2) {
                garbage.insert(Offset::new(offset));
                records.push(undecodable(Offset::new(offset), newest_time));
                offset += 1;
                shift += 1;
            }
            event.offset = Offset::new(offset);
            // A conversation lives in one partition.
            let id = format!("p{partition}-{}", event.event.conversation);
            event.event.conversation = ConversationId::new(id).unwrap();
            let log_time = event.log_time.millis();
            // Where log time stands, the broker's clock may have been set back.
            let set_back = if log_time == newest_time && random.chance(30) {
                random.below(1_000) as i64
            } else {
                0
            };
            newest_time = log_time;
            records.push(RawRecord {
                offset: event.offset,
                append_time: log_time - set_back,
                key: Some(event.event.conversation.as_str().as_bytes().to_vec()),
                value: Some(encode(&event.event).unwrap()),
            });
        }
        let after_last = records
            .last()
            .map_or(NextOffset::START, |last| NextOffset::after(last.offset));
        let markers = random.below(3) as i64;
        Self {
            partition,
            model: Model::of(&logged, &Cast::SMALL.settings),
            logged,
            records,
            garbage,
            end: NextOffset::new(after_last.get() + markers),
        }
    }

    /// The records from `position` on and below `end`.
    pub(crate) fn between(&self, position: NextOffset, end: NextOffset) -> &[RawRecord] {
        let place = |next: NextOffset| {
            self.records
                .partition_point(|record| !next.admits(record.offset))
        };
        &self.records[place(position).min(place(end))..place(end)]
    }

    /// What a checkpoint at `next` says.
    pub(crate) fn checkpoint_at(&self, next: NextOffset) -> Checkpoint {
        let below = self
            .records
            .iter()
            .take_while(|record| !next.admits(record.offset));
        let times = below.clone().map(|record| record.append_time);
        Checkpoint {
            next_offset: next,
            last: below.last().map(|record| LastRecord {
                offset: record.offset,
                fingerprint: record.fingerprint(),
            }),
            log_time: times.max().map_or(LogTime::START, LogTime::from_millis),
        }
    }

    /// Every record that no view can take.
    pub(crate) fn dead_letters(&self) -> BTreeSet<Offset> {
        let is_refused =
            |offset: Offset| matches!(self.model.verdict(offset), Some(Verdict::Refused(_)));
        let refused = self.logged.iter().map(|logged| logged.offset);
        let refused = refused.filter(|offset| is_refused(*offset));
        refused.chain(self.garbage.iter().copied()).collect()
    }
}

fn undecodable(offset: Offset, append_time: i64) -> RawRecord {
    RawRecord {
        offset,
        append_time,
        key: Some(b"nobody".to_vec()),
        value: Some(b"no event".to_vec()),
    }
}
