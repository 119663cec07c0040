//! What lies between the processes of a run and the servers: requests that wait for the scheduler to answer them.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};

use tidemark_event::{NextOffset, Offset, Partition};
use tidemark_projector::DeadLetter;
use tidemark_store::double::{self, Request};
use tokio::sync::oneshot;

use crate::workload::{Workload, index};

/// What processes and the scheduler share.
#[derive(Clone)]
pub(crate) struct World(Arc<Mutex<State>>);

pub(crate) struct State {
    pub(crate) workload: Arc<Workload>,
    /// How far each partition's log has come by now.
    pub(crate) ends: Vec<NextOffset>,
    /// Requests on their way, oldest first.
    pub(crate) pending: Vec<Pending>,
    /// Origins in the dead-letter topic.
    pub(crate) letters: Vec<BTreeSet<Offset>>,
    /// Offsets of the group that have been stored since the scheduler last looked.
    pub(crate) committed: Vec<(Partition, NextOffset)>,
}

/// A request of a process.
pub(crate) struct Pending {
    pub(crate) process: usize,
    pub(crate) ask: Ask,
    pub(crate) answer: oneshot::Sender<Result<Answer, Lost>>,
    /// Not answered before this step.
    pub(crate) held_until: usize,
}

/// What servers are asked.
#[derive(Clone)]
pub(crate) enum Ask {
    /// The store.
    Store(Request),
    /// The dead-letter topic.
    Letters(Vec<DeadLetter>),
    /// The log: where it begins and ends.
    Bounds(Partition),
}

pub(crate) enum Answer {
    Store(double::Answer),
    Sent,
    Bounds(Offset, NextOffset),
}

/// No answer came.
#[derive(Debug)]
pub(crate) struct Lost;

impl World {
    pub(crate) fn new(workload: Arc<Workload>) -> Self {
        let partitions = workload.partitions.len();
        Self(Arc::new(Mutex::new(State {
            workload,
            ends: vec![NextOffset::START; partitions],
            pending: Vec::new(),
            letters: vec![BTreeSet::new(); partitions],
            committed: Vec::new(),
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Asks, and waits for the scheduler's answer.
    pub(crate) async fn ask(&self, process: usize, ask: Ask) -> Result<Answer, Lost> {
        let (answer, answered) = oneshot::channel();
        self.lock().pending.push(Pending {
            process,
            ask,
            answer,
            held_until: 0,
        });
        answered.await.unwrap_or(Err(Lost))
    }
}

impl State {
    pub(crate) fn end(&self, partition: Partition) -> NextOffset {
        self.ends[index(partition)]
    }
}

impl Ask {
    pub(crate) fn is_write(&self) -> bool {
        match self {
            Self::Store(request) => request.is_write(),
            Self::Letters(_) => true,
            Self::Bounds(_) => false,
        }
    }

    /// What kind of step this is, for counting.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Store(request) if request.is_write() => format!("write {}", request.table()),
            Self::Store(request) => format!("read {}", request.table()),
            Self::Letters(_) => "send dead letters".to_owned(),
            Self::Bounds(_) => "ask for the log's bounds".to_owned(),
        }
    }
}

impl std::fmt::Display for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(request) => request.fmt(f),
            Self::Letters(letters) => {
                let offsets = letters.iter().map(|letter| letter.record.offset.get());
                write!(f, "send dead letters of {:?}", offsets.collect::<Vec<_>>())
            }
            Self::Bounds(partition) => write!(f, "ask for the bounds of partition {partition}"),
        }
    }
}
