//! Gathers records of one partition into batches.
//!
//! What has arrived is taken at once, up to the bounds; only a batch that has begun waits a moment for more. So load
//! makes batches bigger, and a quiet partition costs a few milliseconds.

use futures::FutureExt;
use rdkafka::{
    Message,
    error::{KafkaError, RDKafkaErrorCode},
    message::BorrowedMessage,
};
use tidemark_event::Offset;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::{RawRecord, consumer::PartitionQueue, settings::BatchSettings};

pub(crate) struct Batcher {
    queue: PartitionQueue,
    bounds: BatchSettings,
    pending: Vec<RawRecord>,
    bytes: usize,
}

/// Some records, in order.
pub(crate) struct Batch {
    pub(crate) records: Vec<RawRecord>,
    /// The batch ended at its bounds: there is more.
    pub(crate) is_full: bool,
}

/// Kafka does not have the offset that was asked for.
#[derive(Debug)]
pub(crate) struct OutOfRange;

impl Batcher {
    pub(crate) fn new(queue: PartitionQueue, bounds: BatchSettings) -> Self {
        Self {
            queue,
            bounds,
            pending: Vec::new(),
            bytes: 0,
        }
    }

    /// The next batch, which has at least one record. Cancel safe: what was gathered stays for the next call.
    pub(crate) async fn next(&mut self) -> Result<Batch, OutOfRange> {
        while self.pending.is_empty() {
            let received = received(self.queue.recv().await)?;
            self.take(received);
        }
        let deadline = Instant::now() + self.bounds.linger;
        while !self.is_full() {
            let received = match self.queue.recv().now_or_never() {
                Some(received) => received,
                None => match timeout_at(deadline, self.queue.recv()).await {
                    Ok(received) => received,
                    Err(_) => break,
                },
            };
            let received = self::received(received)?;
            let (pending, bytes) = (&mut self.pending, &mut self.bytes);
            if let Some(record) = received {
                *bytes += record.bytes();
                pending.push(record);
            }
        }
        let is_full = self.is_full();
        self.bytes = 0;
        Ok(Batch {
            records: std::mem::take(&mut self.pending),
            is_full,
        })
    }

    fn take(&mut self, received: Option<RawRecord>) {
        if let Some(record) = received {
            self.bytes += record.bytes();
            self.pending.push(record);
        }
    }

    /// Whether records have been gathered that no batch has given yet: Kafka's queue no longer has them, and the view
    /// has not folded them.
    pub(crate) fn holds_records(&self) -> bool {
        !self.pending.is_empty()
    }

    fn is_full(&self) -> bool {
        self.pending.len() >= self.bounds.records || self.bytes >= self.bounds.bytes
    }
}

/// A record; nothing for what is no record and passes by itself.
fn received(
    received: Result<BorrowedMessage<'_>, KafkaError>,
) -> Result<Option<RawRecord>, OutOfRange> {
    match received {
        Ok(message) => Ok(Some(RawRecord {
            offset: Offset::new(message.offset()),
            append_time: message.timestamp().to_millis().unwrap_or(0),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
        })),
        Err(KafkaError::PartitionEOF(_)) => Ok(None),
        Err(KafkaError::MessageConsumption(
            RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange,
        )) => Err(OutOfRange),
        Err(error) => {
            warn!(%error, "Kafka could not give records just now");
            Ok(None)
        }
    }
}
