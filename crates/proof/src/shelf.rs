//! A store of one view in memory, and a worker that folds a log into it by batches, as rule 4 orders.
//!
//! The store keeps what has the newest applied offset, as cells with timestamps do (rule 3), and fails the test where
//! two writes of the same applied offset differ: that would be a fold that depends on where batches end (rule 1).

use std::collections::{BTreeMap, BTreeSet};

use tidemark_event::{ConversationId, Fingerprint, NextOffset, Offset, UserId};
use tidemark_fold::{
    AcceptedId, Applied, Changes, Conversation, DedupeWindow, GenerationSettings, Head,
    LogSettings, Member, Need, Needs, Outcome, PieceNo, Record, Stop, Supply, View,
};
use tidemark_model::{Logged, Settings};

/// The settings of a fold that the model's settings stand for, with pieces so small that every path is walked.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Settings of the log.
    pub log: LogSettings,
    /// Settings of the generation.
    pub generation: GenerationSettings,
}

impl Rules {
    /// The model's settings, and the limit that it must not depend on.
    pub fn of(model: &Settings, fan_out_limit: usize) -> Self {
        let dedupe = DedupeWindow {
            millis: model.dedupe_window_millis,
            ids: model.dedupe_max_ids as u64,
        };
        Self {
            log: LogSettings {
                partitions: 1,
                dedupe,
            },
            generation: GenerationSettings {
                bucket_seqs: 5,
                copy_limit: model.copy_limit as u32,
                fan_out_limit: fan_out_limit as u32,
                inbox_period_millis: 1_000_000_000_000,
                inbox_ttl_millis: 1_000_000_000_000,
                block_seqs: 4,
                piece_ids: 3,
            },
        }
    }
}

/// The record of a logged event.
pub fn record(logged: &Logged) -> Record {
    Record {
        offset: logged.offset,
        log_time: logged.log_time,
        fingerprint: Fingerprint::of(
            None,
            Some(format!("{logged:?}").as_bytes()),
            logged.log_time.millis(),
        ),
        event: logged.event.clone(),
    }
}

/// What the store holds of one view.
#[derive(Debug, Clone, PartialEq)]
pub struct Shelf<V: View> {
    /// Heads.
    pub heads: BTreeMap<ConversationId, Head<V::Extra>>,
    /// Member pieces.
    pub members: BTreeMap<(ConversationId, UserId), Member>,
    /// Accepted ids, by dedupe piece.
    pub ids: BTreeMap<(ConversationId, PieceNo), BTreeSet<AcceptedId>>,
    /// Pieces of the view's own.
    pub pieces: BTreeMap<(ConversationId, V::PieceKey), V::Piece>,
    /// Rows.
    pub rows: BTreeMap<(ConversationId, V::RowKey), V::Row>,
    /// The checkpoint.
    pub next: NextOffset,
    /// Dedupe pieces deleted as of an offset: older ids that arrive late stay deleted.
    pub deleted: BTreeMap<(ConversationId, PieceNo), NextOffset>,
}

/// A step of a flush, and a crash that can come in the middle of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Rows.
    Rows,
    /// Members, ids, the view's own pieces.
    Pieces,
    /// Heads.
    Heads,
    /// The checkpoint.
    Checkpoint,
}

impl<V: View> Default for Shelf<V> {
    fn default() -> Self {
        Self {
            heads: BTreeMap::new(),
            members: BTreeMap::new(),
            ids: BTreeMap::new(),
            pieces: BTreeMap::new(),
            rows: BTreeMap::new(),
            next: NextOffset::START,
            deleted: BTreeMap::new(),
        }
    }
}

fn put<K: Ord + std::fmt::Debug, T: Applied + PartialEq + std::fmt::Debug>(
    map: &mut BTreeMap<K, T>,
    key: K,
    value: T,
) {
    if let Some(stored) = map.get(&key) {
        if stored.applied() > value.applied() {
            return;
        }
        if stored.applied() == value.applied() {
            assert_eq!(
                *stored, value,
                "two writes of {key:?} with the same applied offset"
            );
        }
    }
    map.insert(key, value);
}

impl<V: View> Shelf<V> {
    /// What the store answers to a need.
    pub fn load(
        &self,
        conversation: &ConversationId,
        need: &Need<V::RowKey, V::PieceKey>,
    ) -> Supply<V> {
        let id = conversation.clone();
        match need {
            Need::Head => Supply::Head(self.heads.get(conversation).cloned()),
            Need::Dedupe(no) => Supply::Dedupe(
                *no,
                self.ids
                    .get(&(id, *no))
                    .into_iter()
                    .flatten()
                    .copied()
                    .collect(),
            ),
            Need::Member(user) => {
                Supply::Member(user.clone(), self.members.get(&(id, user.clone())).cloned())
            }
            Need::AllMembers => Supply::AllMembers(self.members_of(conversation)),
            Need::Piece(key) => {
                Supply::Piece(key.clone(), self.pieces.get(&(id, key.clone())).cloned())
            }
            Need::Row(key) => Supply::Row(key.clone(), self.rows.get(&(id, key.clone())).cloned()),
        }
    }

    /// All members of a conversation, former ones too.
    pub fn members_of(&self, conversation: &ConversationId) -> Vec<(UserId, Member)> {
        let of = |(id, _): &&(ConversationId, UserId)| id == conversation;
        self.members
            .iter()
            .filter(|(key, _)| of(key))
            .map(|((_, user), member)| (user.clone(), member.clone()))
            .collect()
    }

    /// Writes one step of a flush; of a step that a crash cuts short only every other write arrives.
    pub fn write(
        &mut self,
        step: Step,
        changes: &[(ConversationId, Changes<V>)],
        next: NextOffset,
        is_cut: bool,
    ) {
        for (index, write) in Write::of(step, changes).into_iter().enumerate() {
            if !is_cut || index % 2 == 1 {
                self.apply(write);
            }
        }
        if step == Step::Checkpoint && !is_cut {
            self.next = self.next.max(next);
            for (id, changes) in changes {
                for no in &changes.left {
                    self.delete_piece(id.clone(), *no, next);
                }
            }
        }
    }

    /// One write arrives, now or late.
    pub fn apply(&mut self, write: Write<V>) {
        match write {
            Write::Row(id, key, row) => put(&mut self.rows, (id, key), row),
            Write::Member(id, user, member) => put(&mut self.members, (id, user), member),
            Write::Piece(id, key, piece) => put(&mut self.pieces, (id, key), piece),
            Write::Head(id, head) => {
                if self
                    .heads
                    .get(&id)
                    .is_none_or(|stored| stored.applied <= head.applied)
                {
                    self.heads.insert(id, head);
                }
            }
            Write::Id(id, no, accepted) => {
                let key = (id, no);
                if self
                    .deleted
                    .get(&key)
                    .is_none_or(|at| at.admits(accepted.offset))
                {
                    self.ids.entry(key).or_default().insert(accepted);
                }
            }
        }
    }

    /// Deletes what a dedupe piece holds of records below `at`.
    pub fn delete_piece(&mut self, conversation: ConversationId, no: PieceNo, at: NextOffset) {
        let key = (conversation, no);
        if let Some(ids) = self.ids.get_mut(&key) {
            ids.retain(|accepted| at.admits(accepted.offset));
        }
        let deleted = self.deleted.entry(key).or_insert(at);
        *deleted = (*deleted).max(at);
    }
}

/// One write of a flush: a row or piece, whole.
#[derive(Debug)]
pub enum Write<V: View> {
    /// A row.
    Row(ConversationId, V::RowKey, V::Row),
    /// A member piece.
    Member(ConversationId, UserId, Member),
    /// An accepted id.
    Id(ConversationId, PieceNo, AcceptedId),
    /// A piece of the view's own.
    Piece(ConversationId, V::PieceKey, V::Piece),
    /// A head.
    Head(ConversationId, Head<V::Extra>),
}

impl<V: View> Write<V> {
    /// The writes of one step.
    pub fn of(step: Step, changes: &[(ConversationId, Changes<V>)]) -> Vec<Self> {
        let mut writes = Vec::new();
        for (id, changes) in changes {
            let id = || id.clone();
            match step {
                Step::Rows => {
                    writes.extend(
                        changes
                            .rows
                            .iter()
                            .map(|(key, row)| Self::Row(id(), key.clone(), row.clone())),
                    );
                }
                Step::Pieces => {
                    let members = changes.members.iter();
                    writes
                        .extend(members.map(|(user, member)| {
                            Self::Member(id(), user.clone(), member.clone())
                        }));
                    writes.extend(
                        changes
                            .ids
                            .iter()
                            .map(|(no, accepted)| Self::Id(id(), *no, *accepted)),
                    );
                    let pieces = changes.pieces.iter();
                    writes.extend(
                        pieces.map(|(key, piece)| Self::Piece(id(), key.clone(), piece.clone())),
                    );
                }
                Step::Heads => writes.extend(
                    changes
                        .head
                        .iter()
                        .map(|head| Self::Head(id(), head.clone())),
                ),
                Step::Checkpoint => {}
            }
        }
        writes
    }
}

/// What a batch is to write.
pub type Batch<V> = Vec<(ConversationId, Changes<V>)>;

/// A worker's memory.
pub struct Worker<V: View> {
    /// What it folds by.
    pub rules: Rules,
    /// What it has in memory.
    pub conversations: BTreeMap<ConversationId, Conversation<V>>,
    /// The reads it has done, by what was asked for.
    pub loads: usize,
}

impl<V: View> Worker<V> {
    /// A worker with nothing in memory.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            conversations: BTreeMap::new(),
            loads: 0,
        }
    }

    /// Folds a batch in memory.
    pub fn fold(
        &mut self,
        batch: &[Logged],
        shelf: &Shelf<V>,
        foresees: bool,
    ) -> (Batch<V>, Vec<(Offset, Outcome)>) {
        let mut outcomes = Vec::new();
        let Some(first) = batch.first().map(|logged| logged.offset) else {
            return (Vec::new(), outcomes);
        };
        for logged in batch {
            let record = record(logged);
            let id = &record.event.conversation;
            let conversation = self.conversations.entry(id.clone()).or_default();
            let mut asked = Needs::<V>::new();
            if foresees {
                for _ in 0..2 {
                    for need in conversation.foresee(&record.event, &self.rules.generation) {
                        conversation.supply(shelf.load(id, &need), first);
                    }
                }
            }
            loop {
                match conversation.fold(&record, &self.rules.log, &self.rules.generation) {
                    Ok(outcome) => {
                        outcomes.push((record.offset, outcome));
                        break;
                    }
                    Err(Stop::Needs(needs)) => {
                        assert!(!needs.is_empty(), "a stop that asks for nothing");
                        for need in needs {
                            assert!(asked.insert(need.clone()), "asked twice for {need:?}");
                            self.loads += 1;
                            conversation.supply(shelf.load(id, &need), first);
                        }
                    }
                    Err(stop) => panic!("{stop} at {logged:?}"),
                }
            }
        }
        let mut changes = Vec::new();
        for (id, conversation) in &mut self.conversations {
            changes.push((id.clone(), conversation.take_changes()));
        }
        (changes, outcomes)
    }
}

/// The steps of a flush, in order.
pub const STEPS: [Step; 4] = [Step::Rows, Step::Pieces, Step::Heads, Step::Checkpoint];

/// Folds a whole log, `batch` records at a time, and gives the store after it and what became of each record.
pub fn fold_all<V: View>(
    log: &[Logged],
    rules: Rules,
    batch: usize,
) -> (Shelf<V>, Vec<(Offset, Outcome)>) {
    let mut shelf = Shelf::default();
    let mut worker = Worker::new(rules);
    let mut outcomes = Vec::new();
    for records in log.chunks(batch.max(1)) {
        let (changes, became) = worker.fold(records, &shelf, false);
        outcomes.extend(became);
        let next = records
            .last()
            .map_or(NextOffset::START, |last| NextOffset::after(last.offset));
        for step in STEPS {
            shelf.write(step, &changes, next, false);
        }
    }
    (shelf, outcomes)
}
