//! A store of one view in memory, and a worker that folds a log into it by batches, as rule 4 orders.
//!
//! The store keeps what has the newest applied offset, as cells with timestamps do (rule 3), and fails the test where
//! two writes of the same applied offset differ: that would be a fold that depends on where batches end (rule 1).

#![allow(dead_code, unreachable_pub)]

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
    pub log: LogSettings,
    pub generation: GenerationSettings,
}

impl Rules {
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
    pub heads: BTreeMap<ConversationId, Head<V::Extra>>,
    pub members: BTreeMap<(ConversationId, UserId), Member>,
    pub ids: BTreeMap<(ConversationId, PieceNo), BTreeSet<AcceptedId>>,
    pub pieces: BTreeMap<(ConversationId, V::PieceKey), V::Piece>,
    pub rows: BTreeMap<(ConversationId, V::RowKey), V::Row>,
    pub next: NextOffset,
}

/// A step of a flush, and a crash that can come in the middle of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Rows,
    Pieces,
    Heads,
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
        }
    }
}

fn write<K: Ord + std::fmt::Debug, T: Applied + PartialEq + std::fmt::Debug>(
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
        let mut count = 0;
        let mut arrives = || {
            count += 1;
            !is_cut || count % 2 == 0
        };
        for (id, changes) in changes {
            match step {
                Step::Rows => {
                    for (key, row) in changes.rows.iter().filter(|_| arrives()) {
                        write(&mut self.rows, (id.clone(), key.clone()), row.clone());
                    }
                }
                Step::Pieces => {
                    for (user, member) in changes.members.iter().filter(|_| arrives()) {
                        write(
                            &mut self.members,
                            (id.clone(), user.clone()),
                            member.clone(),
                        );
                    }
                    for (no, accepted) in changes.ids.iter().filter(|_| arrives()) {
                        self.ids
                            .entry((id.clone(), *no))
                            .or_default()
                            .insert(*accepted);
                    }
                    for (key, piece) in changes.pieces.iter().filter(|_| arrives()) {
                        write(&mut self.pieces, (id.clone(), key.clone()), piece.clone());
                    }
                }
                Step::Heads => {
                    for head in changes.head.iter().filter(|_| arrives()) {
                        if self
                            .heads
                            .get(id)
                            .is_none_or(|stored| stored.applied <= head.applied)
                        {
                            self.heads.insert(id.clone(), head.clone());
                        }
                    }
                }
                Step::Checkpoint => {
                    for no in changes.left.iter().filter(|_| !is_cut) {
                        self.ids.remove(&(id.clone(), *no));
                    }
                }
            }
        }
        if step == Step::Checkpoint && !is_cut {
            self.next = self.next.max(next);
        }
    }
}

/// What a batch is to write.
pub type Batch<V> = Vec<(ConversationId, Changes<V>)>;

/// A worker's memory.
pub struct Worker<V: View> {
    pub rules: Rules,
    pub conversations: BTreeMap<ConversationId, Conversation<V>>,
    /// The reads it has done, by what was asked for.
    pub loads: usize,
}

impl<V: View> Worker<V> {
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
