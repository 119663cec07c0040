//! What survives a crash: the log, the stored views, the dead letters; and the requests on their way.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_event::{ConversationId, Offset, Partition};
use tidemark_fold::{PieceNo, View};
use tidemark_model::Logged;
use tidemark_projector::{DeadLetter, RawRecord, Wanted};
use tidemark_proof::{Shelf, Write};
use tidemark_store::{Checkpoint, Loaded};
use tokio::sync::oneshot;

use crate::random::Random;

/// One partition: its log, and what the view holds of it.
pub(crate) struct PartitionWorld<V: View> {
    pub(crate) logged: Vec<Logged>,
    pub(crate) records: Vec<RawRecord>,
    pub(crate) shelf: Shelf<V>,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) letters: BTreeSet<Offset>,
    /// Writes that were reported as failed and arrive all the same, some time.
    pub(crate) late: Vec<Write<V>>,
}

/// A request of a worker, waiting for the scheduler.
pub(crate) struct Pending<V: View> {
    pub(crate) worker: usize,
    pub(crate) partition: Partition,
    pub(crate) request: Request<V>,
    pub(crate) answer: oneshot::Sender<Result<Answer<V>, Failed>>,
}

pub(crate) enum Request<V: View> {
    Checkpoint,
    Load(Wanted<V>),
    Write(Vec<Write<V>>),
    WriteCheckpoint(Checkpoint),
    DeletePieces(Vec<(ConversationId, PieceNo)>, Checkpoint),
    Letters(Vec<DeadLetter>),
}

pub(crate) enum Answer<V: View> {
    Checkpoint(Option<Checkpoint>),
    Loaded(Loaded<V>),
    Done,
}

/// The request failed, or its answer was lost.
#[derive(Debug)]
pub(crate) struct Failed;

pub(crate) struct World<V: View> {
    pub(crate) partitions: BTreeMap<Partition, PartitionWorld<V>>,
    pub(crate) pending: Vec<Pending<V>>,
}

impl<V: View> PartitionWorld<V> {
    /// Does what a request asks, whole.
    pub(crate) fn serve(&mut self, request: Request<V>) -> Answer<V> {
        match request {
            Request::Checkpoint => Answer::Checkpoint(self.checkpoint),
            Request::Load(wanted) => {
                let load = |(id, need)| {
                    let supply = self.shelf.load(&id, &need);
                    (id, supply)
                };
                Answer::Loaded(wanted.into_iter().map(load).collect())
            }
            Request::Write(writes) => {
                writes.into_iter().for_each(|write| self.shelf.apply(write));
                Answer::Done
            }
            Request::WriteCheckpoint(checkpoint) => {
                if self
                    .checkpoint
                    .is_none_or(|stored| stored.next_offset <= checkpoint.next_offset)
                {
                    self.checkpoint = Some(checkpoint);
                }
                Answer::Done
            }
            Request::DeletePieces(pieces, at) => {
                for (id, no) in pieces {
                    self.shelf.delete_piece(id, no, at.next_offset);
                }
                Answer::Done
            }
            Request::Letters(letters) => {
                self.letters
                    .extend(letters.iter().map(|letter| letter.record.offset));
                Answer::Done
            }
        }
    }

    /// Does part of what a request asks; the rest is given up, or arrives late.
    pub(crate) fn serve_in_part(&mut self, request: Request<V>, random: &mut Random) {
        let Request::Write(mut writes) = request else {
            if random.chance(50) {
                self.serve(request);
            }
            return;
        };
        while !writes.is_empty() {
            let write = writes.swap_remove(random.below(writes.len()));
            match random.below(3) {
                0 => self.shelf.apply(write),
                1 => self.late.push(write),
                _ => drop(write),
            }
        }
    }

    /// One late write arrives.
    pub(crate) fn arrive(&mut self, random: &mut Random) -> bool {
        if self.late.is_empty() {
            return false;
        }
        let write = self.late.swap_remove(random.below(self.late.len()));
        self.shelf.apply(write);
        true
    }
}
