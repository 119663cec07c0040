//! What a worker's loop asks of Kafka: the seam where a simulation puts a log and a group of its own.
//!
//! The group speaks first: [`GroupEvent`]s tell the loop which partitions it has, hand it their queues, and take them
//! away. Nothing here knows librdkafka; `consumer` does.

use std::{future::Future, sync::mpsc as sync_mpsc};

use tidemark_event::{NextOffset, Offset, Partition};

use crate::RawRecord;

/// The log, as a member of a consumer group reaches it.
pub trait LogSource: Clone + Send + Sync + 'static {
    /// Where the records of an assigned partition come from.
    type Queue: RecordQueue;

    /// The first offset of a partition, and the end of it.
    fn bounds(
        &self,
        partition: Partition,
    ) -> impl Future<Output = Result<(Offset, NextOffset), BoundsError>> + Send;

    /// Notes the offset that ordinary tools show as the group's. Nothing is ever resumed from it.
    fn store_offset(&self, partition: Partition, next: NextOffset);
}

/// The records of one assigned partition, in order.
pub trait RecordQueue: Send + 'static {
    /// What comes next. Cancel safe: a record is either returned or still in the queue.
    fn recv(&mut self) -> impl Future<Output = Result<Received, OutOfRange>> + Send;
}

/// What a queue gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A record.
    Record(RawRecord),
    /// The end of the log as it was when this was asked for, in its place behind all records.
    End,
    /// Nothing that counts: a passing failure.
    Nothing,
}

/// Kafka does not have the offset that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfRange;

/// Kafka did not tell where a partition starts and ends. Asking again may help.
#[derive(Debug, thiserror::Error)]
#[error("Kafka did not tell the log's bounds: {0}")]
pub struct BoundsError(pub String);

/// What the group tells the worker's loop.
#[derive(Debug)]
pub enum GroupEvent<Q> {
    /// Partitions were given to this worker. The answer says where to start those that can be started.
    Assigned {
        /// All that were given.
        partitions: Vec<Partition>,
        /// Takes the answer.
        starts: sync_mpsc::Sender<Vec<(Partition, Offset)>>,
    },
    /// The queue of a partition that was answered with a start: its records come from here on.
    Started {
        /// The partition.
        partition: Partition,
        /// Its queue.
        queue: Q,
    },
    /// Partitions are being taken away. The answer comes once they have come to rest.
    Revoked {
        /// All that are taken.
        partitions: Vec<Partition>,
        /// Takes the answer.
        at_rest: sync_mpsc::Sender<()>,
    },
    /// What the client knows of the partitions, once a second.
    Statistics(Vec<PartitionStatistics>),
}

/// What the client knows of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionStatistics {
    /// The partition.
    pub partition: Partition,
    /// The end of what readers can see.
    pub log_end: Option<NextOffset>,
    /// Everything below has been taken out of the partition's queue, be it records or offsets without any. May still
    /// tell of an earlier assignment of the same partition, whose records were taken and never folded.
    pub drained_to: Option<NextOffset>,
}
