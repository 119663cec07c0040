//! Gathers records of one partition into batches.
//!
//! What has arrived is taken at once, up to the bounds; only a batch that has begun waits a moment for more. So load
//! makes batches bigger, and a quiet partition costs a few milliseconds.

use futures::FutureExt;
use tokio::time::{Instant, timeout_at};

use crate::{
    RawRecord,
    log_source::{OutOfRange, Received, RecordQueue},
    settings::BatchSettings,
};

pub(crate) struct Batcher<Q> {
    queue: Q,
    bounds: BatchSettings,
    pending: Vec<RawRecord>,
    bytes: usize,
    /// The queue told of the log's end, and has given no record since.
    is_at_end: bool,
}

/// Some records, in order.
pub(crate) struct Batch {
    pub(crate) records: Vec<RawRecord>,
    /// The batch ended at its bounds: there is more.
    pub(crate) is_full: bool,
}

impl<Q: RecordQueue> Batcher<Q> {
    pub(crate) fn new(queue: Q, bounds: BatchSettings) -> Self {
        Self {
            queue,
            bounds,
            pending: Vec::new(),
            bytes: 0,
            is_at_end: false,
        }
    }

    /// The next batch, which has at least one record. Cancel safe: what was gathered stays for the next call.
    pub(crate) async fn next(&mut self) -> Result<Batch, OutOfRange> {
        while self.pending.is_empty() {
            let received = self.queue.recv().await?;
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
            self.take(received?);
        }
        let is_full = self.is_full();
        self.bytes = 0;
        Ok(Batch {
            records: std::mem::take(&mut self.pending),
            is_full,
        })
    }

    fn take(&mut self, received: Received) {
        match received {
            Received::Record(record) => {
                self.bytes += record.bytes();
                self.pending.push(record);
                self.is_at_end = false;
            }
            Received::End => self.is_at_end = true,
            Received::Nothing => {}
        }
    }

    /// Whether every record up to an end of the log that this queue itself has told of was given in a batch: none is
    /// being gathered, which Kafka's queue no longer has and the view has not folded.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_at_end && self.pending.is_empty()
    }

    /// What is gathered and was given in no batch.
    #[cfg(feature = "planted-faults")]
    pub(crate) fn gathered(&self) -> &[RawRecord] {
        &self.pending
    }

    fn is_full(&self) -> bool {
        self.pending.len() >= self.bounds.records || self.bytes >= self.bounds.bytes
    }
}
