//! The log, the dead-letter topic and the way to the store, as one simulated process has them.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{FutureExt, future::BoxFuture};
use rdkafka::{error::KafkaError, types::RDKafkaErrorCode};
use tidemark_event::{NextOffset, Offset, Partition};
use tidemark_projector::{
    BoundsError, DeadLetter, DeadLetterError, DeadLetters, LogSource, OutOfRange,
    PartitionStatistics, RawRecord, Received, RecordQueue,
};
use tidemark_store::double::{self, Cluster, Request, Wire};
use tokio::sync::Notify;

use crate::world::{Answer, Ask, World};

/// A process's way to Kafka.
#[derive(Clone)]
pub(crate) struct SimSource {
    pub(crate) world: World,
    pub(crate) process: usize,
}

impl LogSource for SimSource {
    type Queue = SimQueue;

    async fn bounds(&self, partition: Partition) -> Result<(Offset, NextOffset), BoundsError> {
        match self.world.ask(self.process, Ask::Bounds(partition)).await {
            Ok(Answer::Bounds(start, end)) => Ok((start, end)),
            _ => Err(BoundsError("no answer".to_owned())),
        }
    }

    fn store_offset(&self, partition: Partition, next: NextOffset) {
        self.world.lock().committed.push((partition, next));
    }
}

/// What has been fetched of one assigned partition and not yet taken out.
pub(crate) struct Feed {
    partition: Partition,
    state: Mutex<FeedState>,
    filled: Notify,
}

struct FeedState {
    items: VecDeque<Received>,
    /// Where the next fetch begins.
    position: NextOffset,
    /// The end that was last come upon.
    end: Option<NextOffset>,
}

impl Feed {
    pub(crate) fn from(partition: Partition, start: Offset) -> Arc<Self> {
        let state = FeedState {
            items: VecDeque::new(),
            position: NextOffset::new(start.get()),
            end: None,
        };
        Arc::new(Self {
            partition,
            state: Mutex::new(state),
            filled: Notify::new(),
        })
    }

    /// Fetches at most `count` records, and tells of the end where that is come upon. Says whether anything came.
    pub(crate) fn fetch(&self, world: &World, count: usize) -> bool {
        let world = world.lock();
        let end = world.end(self.partition);
        let log = world.workload.partition(self.partition);
        let mut state = self.state.lock().unwrap();
        let records: Vec<RawRecord> = log
            .between(state.position, end)
            .iter()
            .take(count)
            .cloned()
            .collect();
        let is_all = log.between(state.position, end).len() == records.len();
        if let Some(last) = records.last() {
            state.position = NextOffset::after(last.offset);
        }
        let has_records = !records.is_empty();
        state
            .items
            .extend(records.into_iter().map(Received::Record));
        let is_new_end = is_all && state.end != Some(end);
        if is_all {
            state.position = state.position.max(end);
            state.end = Some(end);
        }
        if is_new_end {
            state.items.push_back(Received::End);
        }
        if has_records || is_new_end {
            self.filled.notify_one();
        }
        has_records || is_new_end
    }

    /// The end of the log that was last come upon.
    pub(crate) fn end(&self) -> Option<NextOffset> {
        self.state.lock().unwrap().end
    }

    /// What the client's statistics say.
    pub(crate) fn statistics(&self, world: &World) -> PartitionStatistics {
        let state = self.state.lock().unwrap();
        PartitionStatistics {
            partition: self.partition,
            log_end: Some(world.lock().end(self.partition)),
            drained_to: state.end.filter(|_| state.items.is_empty()),
        }
    }
}

/// The queue of one assigned partition.
pub(crate) struct SimQueue(pub(crate) Arc<Feed>);

impl RecordQueue for SimQueue {
    async fn recv(&mut self) -> Result<Received, OutOfRange> {
        loop {
            if let Some(item) = self.0.state.lock().unwrap().items.pop_front() {
                return Ok(item);
            }
            self.0.filled.notified().await;
        }
    }
}

/// The dead-letter topic.
#[derive(Clone)]
pub(crate) struct SimLetters {
    pub(crate) world: World,
    pub(crate) process: usize,
}

impl DeadLetters for SimLetters {
    async fn send(&self, letters: &[DeadLetter]) -> Result<(), DeadLetterError> {
        let ask = Ask::Letters(letters.to_vec());
        if self.world.ask(self.process, ask).await.is_ok() {
            return Ok(());
        }
        let first = &letters[0];
        Err(DeadLetterError::Send {
            topic: "the dead letters".to_owned(),
            partition: first.partition,
            offset: first.record.offset,
            source: KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut),
        })
    }
}

/// A process's way to the store: at once while it opens its generation, by the scheduler afterwards.
pub(crate) struct SimWire {
    pub(crate) world: World,
    pub(crate) process: usize,
    pub(crate) cluster: Cluster,
    pub(crate) is_scheduled: AtomicBool,
}

impl Wire for SimWire {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<double::Answer, double::Lost>> {
        if !self.is_scheduled.load(Ordering::Relaxed) {
            let answer = request.apply(&self.cluster);
            return async move { Ok(answer) }.boxed();
        }
        async move {
            match self.world.ask(self.process, Ask::Store(request)).await {
                Ok(Answer::Store(answer)) => Ok(answer),
                _ => Err(double::Lost),
            }
        }
        .boxed()
    }
}
