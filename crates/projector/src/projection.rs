//! One partition of one view: folds batches of records and flushes them, by the five rules.
//!
//! A batch is decoded, grouped by conversation and folded in memory; parts that a fold asks for are loaded in waves for
//! all conversations at once. Then it is flushed: dead letters and rows, pieces of state, heads, the checkpoint, each
//! acknowledged before the next begins. A crash after any of them leaves a prefix from which folding the same records
//! again gives the same (rules 2 to 4).
//!
//! The future of [`Projection::fold`] may be dropped at any await: the projection is then to be dropped with it, since
//! what is in memory counts as written. A worker that has lost the partition may still be in here. What it writes
//! carries older timestamps than its successor's and loses (rule 3); before each flush it looks at the checkpoint, and
//! where that is beyond itself it stops, because dedupe pieces it has loaded may have been deleted meanwhile.
//!
//! Knows the fold and the store, not Kafka: records come in, and committing the group's offset is the caller's.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use tidemark_event::{
    ConversationId, DecodeError, LogTime, NextOffset, Offset, Partition, UnknownSchema,
};
#[cfg(feature = "planted-faults")]
use tidemark_fold::planted::{Fault, is_planted};
use tidemark_fold::{
    Changes, Conversation, GenerationSettings, LogSettings, Need, Needs, Outcome, PieceNo, Record,
    Stop, View,
};
use tidemark_store::{Checkpoint, LastRecord, Refusal, Written};
use tokio::time::Instant;

use crate::{
    DeadLetter, DeadLetters, RawRecord, ViewStore,
    retry::{Attempts, until_done},
};

/// Why a partition stands still. Each needs somebody to act, or another worker to go on.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// A record of a schema that this release does not know. Everything before it is flushed.
    #[error(
        "the record at offset {offset} is of a schema that this release does not know: run one that does"
    )]
    UnknownSchema {
        /// The record.
        offset: Offset,
        /// Which schema.
        source: UnknownSchema,
    },
    /// The log is not the one that the view was folded from.
    #[error("conversation {conversation}: {found}: was the topic created anew?")]
    OtherRecord {
        /// The conversation.
        conversation: ConversationId,
        /// What was found.
        found: String,
    },
    /// The store lacks what must be there.
    #[error("conversation {conversation}: {what} at offset {offset}: rebuild the view")]
    Damaged {
        /// The conversation.
        conversation: ConversationId,
        /// The record being folded.
        offset: Offset,
        /// What is missing.
        what: String,
    },
    /// Another worker's checkpoint is beyond this one's: it has taken the partition over.
    #[error(
        "the checkpoint is at {stored}, beyond this worker's {own}: another worker has the partition"
    )]
    Overtaken {
        /// This worker's next offset as of its newest checkpoint.
        own: NextOffset,
        /// The stored one.
        stored: NextOffset,
    },
    /// The store refused, and would again.
    #[error("the store refused to {act}")]
    Store {
        /// What was tried.
        act: &'static str,
        /// Why.
        source: tidemark_store::StoreError,
    },
}

/// What folding and flushing a batch came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchReport {
    /// Records that were new to the view and accepted.
    pub accepted: u64,
    /// Records whose event had been accepted before.
    pub duplicates: u64,
    /// Records that went to the dead letters.
    pub dead_letters: u64,
    /// Records that a head had folded already.
    pub behind: u64,
    /// Parts loaded from the store.
    pub loaded: u64,
    /// What was written.
    pub written: Written,
}

impl std::ops::AddAssign for BatchReport {
    fn add_assign(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.duplicates += other.duplicates;
        self.dead_letters += other.dead_letters;
        self.behind += other.behind;
        self.loaded += other.loaded;
        self.written += other.written;
    }
}

/// One partition of one view.
#[derive(Debug)]
pub struct Projection<V: View, S, D> {
    partition: Partition,
    store: S,
    dead_letters: D,
    log: LogSettings,
    settings: GenerationSettings,
    /// What has been folded and flushed, rows to heads.
    flushed: Checkpoint,
    /// The newest checkpoint known to be stored.
    stored: Checkpoint,
    checkpointed_at: Instant,
    checkpoint_interval: Duration,
    conversations: BTreeMap<ConversationId, Cached<V>>,
    state_bytes: usize,
    state_budget: usize,
    batches: u64,
    left: Vec<(ConversationId, PieceNo)>,
}

#[derive(Debug)]
struct Cached<V: View> {
    conversation: Conversation<V>,
    weight: usize,
    used: u64,
}

/// A batch in memory, folded and not flushed.
struct Folded<V: View> {
    changes: Vec<(ConversationId, Changes<V>)>,
    letters: Vec<DeadLetter>,
    refusals: Vec<Refusal>,
    next: Checkpoint,
    report: BatchReport,
    /// The record that the partition stops at.
    unknown: Option<(Offset, UnknownSchema)>,
}

impl<V: View, S: ViewStore<V>, D: DeadLetters> Projection<V, S, D> {
    /// A projection that goes on from `checkpoint`.
    pub fn new(partition: Partition, checkpoint: Checkpoint, store: S, dead_letters: D) -> Self {
        Self {
            partition,
            log: store.log_settings(),
            settings: store.settings(),
            store,
            dead_letters,
            flushed: checkpoint,
            stored: checkpoint,
            checkpointed_at: Instant::now(),
            checkpoint_interval: Duration::ZERO,
            conversations: BTreeMap::new(),
            state_bytes: 0,
            state_budget: usize::MAX,
            batches: 0,
            left: Vec::new(),
        }
    }

    /// Lets the checkpoint trail for up to `interval` while the caller says that it is catching up.
    #[must_use]
    pub fn with_checkpoint_interval(mut self, interval: Duration) -> Self {
        self.checkpoint_interval = interval;
        self
    }

    /// Keeps at most about `bytes` of conversation state in memory between batches.
    #[must_use]
    pub fn with_state_budget(mut self, bytes: usize) -> Self {
        self.state_budget = bytes;
        self
    }

    /// What is stored for whoever resumes.
    pub fn stored(&self) -> Checkpoint {
        self.stored
    }

    /// What has been folded and flushed.
    pub fn flushed(&self) -> Checkpoint {
        self.flushed
    }

    /// About how many bytes of conversation state are in memory.
    pub fn state_bytes(&self) -> usize {
        self.state_bytes
    }

    /// Folds and flushes a batch: records in offset order, all of them at or above the next offset.
    ///
    /// Waits for the store as long as that takes. `is_catching_up` lets the checkpoint trail.
    ///
    /// # Errors
    /// [`ProjectError`]: the projection is to be dropped. What came before the record that stopped it is flushed.
    pub async fn fold(
        &mut self,
        records: Vec<RawRecord>,
        is_catching_up: bool,
        attempts: &Attempts,
    ) -> Result<BatchReport, ProjectError> {
        let mut folded = self.fold_in_memory(records, attempts).await?;
        let unknown = folded.unknown.take();
        #[cfg(feature = "planted-faults")]
        if is_planted(Fault::CheckpointBeforeRows) {
            let flushed = std::mem::replace(&mut self.flushed, folded.next);
            self.write_checkpoint(attempts).await?;
            self.flushed = flushed;
        }
        let report = self.flush(folded, attempts).await?;
        if unknown.is_some()
            || !is_catching_up
            || self.checkpointed_at.elapsed() >= self.checkpoint_interval
        {
            self.write_checkpoint(attempts).await?;
        }
        self.evict();
        match unknown {
            Some((offset, source)) => Err(ProjectError::UnknownSchema { offset, source }),
            None => Ok(report),
        }
    }

    /// Moves on over offsets that hold no records for readers, such as transaction markers: the log is known to have
    /// none from the next offset up to `next`.
    ///
    /// # Errors
    /// [`ProjectError`]: the projection is to be dropped.
    pub async fn skip_hole(
        &mut self,
        next: NextOffset,
        attempts: &Attempts,
    ) -> Result<(), ProjectError> {
        if next > self.flushed.next_offset {
            self.check_not_overtaken(attempts).await?;
            self.flushed.next_offset = next;
        }
        self.write_checkpoint(attempts).await
    }

    /// Stores the checkpoint of what is flushed, if it is not stored yet, and deletes what it has left behind.
    ///
    /// # Errors
    /// [`ProjectError`]: the projection is to be dropped.
    pub async fn write_checkpoint(&mut self, attempts: &Attempts) -> Result<(), ProjectError> {
        self.checkpointed_at = Instant::now();
        if self.stored == self.flushed {
            return Ok(());
        }
        let (store, partition, checkpoint) = (&self.store, self.partition, self.flushed);
        until_done(attempts, "write the checkpoint", || {
            store.write_checkpoint(partition, &checkpoint)
        })
        .await?;
        self.stored = self.flushed;
        if !self.left.is_empty() {
            let (left, stored) = (std::mem::take(&mut self.left), self.stored);
            until_done(attempts, "delete dedupe pieces", || {
                store.delete_dedupe_pieces(&left, &stored)
            })
            .await?;
        }
        Ok(())
    }

    async fn fold_in_memory(
        &mut self,
        records: Vec<RawRecord>,
        attempts: &Attempts,
    ) -> Result<Folded<V>, ProjectError> {
        let mut folded = Folded {
            changes: Vec::new(),
            letters: Vec::new(),
            refusals: Vec::new(),
            next: self.flushed,
            report: BatchReport::default(),
            unknown: None,
        };
        let mut raw = BTreeMap::new();
        let mut waiting: BTreeMap<ConversationId, Waiting> = BTreeMap::new();
        let Some(first) = records.first().map(|record| record.offset) else {
            return Ok(folded);
        };
        for record in records {
            let log_time = folded.next.log_time.advance(record.append_time);
            match record.decode(log_time) {
                Ok(decoded) => {
                    waiting
                        .entry(decoded.event.conversation.clone())
                        .or_default()
                        .records
                        .push(decoded);
                }
                Err(DecodeError::UnknownSchema(unknown)) => {
                    folded.unknown = Some((record.offset, unknown));
                    break;
                }
                Err(DecodeError::Undecodable(why)) => {
                    folded.letters.push(DeadLetter {
                        record: record.clone(),
                        partition: self.partition,
                        reason: "undecodable".to_owned(),
                        detail: describe(&why),
                    });
                }
            }
            folded.next = checkpoint_after(&record, log_time);
            raw.insert(record.offset, record);
        }
        self.fold_waves(first, &mut waiting, &mut folded, attempts)
            .await?;
        for (id, conversation) in waiting {
            for (record, reason) in conversation.refused {
                if let Some(raw) = raw.get(&record.offset) {
                    folded.letters.push(DeadLetter {
                        record: raw.clone(),
                        partition: self.partition,
                        reason: reason.as_str().to_owned(),
                        detail: format!(
                            "{} of {} in {id}",
                            record.event.payload.type_name(),
                            record.event.actor
                        ),
                    });
                }
                folded.refusals.push(Refusal {
                    conversation: id.clone(),
                    event_id: record.event.id,
                    offset: record.offset,
                    log_time: record.log_time,
                    reason,
                });
            }
        }
        folded.letters.sort_by_key(|letter| letter.record.offset);
        folded.report.dead_letters = folded.letters.len() as u64;
        Ok(folded)
    }

    /// Folds what can be folded, loads what was asked for, and so on until every record is folded.
    async fn fold_waves(
        &mut self,
        first: Offset,
        waiting: &mut BTreeMap<ConversationId, Waiting>,
        folded: &mut Folded<V>,
        attempts: &Attempts,
    ) -> Result<(), ProjectError> {
        self.batches += 1;
        let mut open: Vec<ConversationId> = waiting.keys().cloned().collect();
        let mut is_foreseen = false;
        while !open.is_empty() {
            let mut wanted = Vec::new();
            let mut still_open = Vec::new();
            let mut is_asking_for_heads = false;
            for id in open {
                let Some(waits) = waiting.get_mut(&id) else {
                    continue;
                };
                let cached = self
                    .conversations
                    .entry(id.clone())
                    .or_insert_with(Cached::new);
                cached.used = self.batches;
                let mut needs = waits.fold(
                    &mut cached.conversation,
                    &self.log,
                    &self.settings,
                    &mut folded.report,
                )?;
                if needs.is_empty() {
                    continue;
                }
                if !is_foreseen {
                    for record in &waits.records[waits.folded..] {
                        needs.extend(cached.conversation.foresee(&record.event, &self.settings));
                    }
                }
                is_asking_for_heads |= needs.contains(&Need::Head);
                wanted.extend(needs.into_iter().map(|need| (id.clone(), need)));
                still_open.push(id);
            }
            open = still_open;
            // The first wave may have asked for heads alone: what else is foreseeable shows once they are there.
            is_foreseen = !is_asking_for_heads;
            if open.is_empty() {
                break;
            }
            let (store, partition) = (&self.store, self.partition);
            let supplies =
                until_done(attempts, "load", || store.load(partition, wanted.clone())).await?;
            folded.report.loaded += supplies.len() as u64;
            for (id, supply) in supplies {
                if let Entry::Occupied(mut cached) = self.conversations.entry(id) {
                    cached.get_mut().conversation.supply(supply, first);
                }
            }
        }
        for (id, _) in waiting.iter() {
            let Some(cached) = self.conversations.get_mut(id) else {
                continue;
            };
            let changes = cached.conversation.take_changes();
            let weight = cached.conversation.weight();
            self.state_bytes = self.state_bytes + weight - cached.weight;
            cached.weight = weight;
            if !changes.is_empty() {
                folded.changes.push((id.clone(), changes));
            }
        }
        Ok(())
    }

    async fn flush(
        &mut self,
        folded: Folded<V>,
        attempts: &Attempts,
    ) -> Result<BatchReport, ProjectError> {
        let Folded {
            changes,
            letters,
            refusals,
            next,
            mut report,
            ..
        } = folded;
        let (store, partition) = (&self.store, self.partition);
        self.check_not_overtaken(attempts).await?;
        #[cfg(feature = "planted-faults")]
        if is_planted(Fault::HeadBeforePieces) {
            until_done(attempts, "write heads", || store.write_heads(&changes)).await?;
        }
        let rows = async {
            #[cfg(feature = "planted-faults")]
            if is_planted(Fault::RetryThatReorders)
                && store.write_rows(partition, &changes).await.is_err()
            {
                return Ok(Written::default());
            }
            let mut written = until_done(attempts, "write rows", || {
                store.write_rows(partition, &changes)
            })
            .await?;
            if !refusals.is_empty() {
                written += until_done(attempts, "write refusals", || {
                    store.write_refusals(&refusals)
                })
                .await?;
            }
            Ok::<_, ProjectError>(written)
        };
        let dead_letters = async {
            if !letters.is_empty() {
                let send = || self.dead_letters.send(&letters);
                crate::retry::until_sent(attempts, send).await;
            }
            Ok(())
        };
        let (written, ()) = tokio::try_join!(rows, dead_letters)?;
        report.written += written;
        report.written +=
            until_done(attempts, "write pieces", || store.write_pieces(&changes)).await?;
        report.written +=
            until_done(attempts, "write heads", || store.write_heads(&changes)).await?;
        #[cfg(feature = "planted-faults")]
        if is_planted(Fault::RetryThatReorders) {
            until_done(attempts, "write rows", || {
                store.write_rows(partition, &changes)
            })
            .await?;
        }
        self.flushed = next;
        for (id, changes) in changes {
            self.left
                .extend(changes.left.into_iter().map(|no| (id.clone(), no)));
        }
        Ok(report)
    }

    /// Gives what is in memory of the partition to a worker that keeps it though it must not.
    #[cfg(feature = "planted-faults")]
    pub(crate) fn take_memory(&mut self) -> Box<dyn std::any::Any + Send> {
        Box::new(std::mem::take(&mut self.conversations))
    }

    /// Takes in what was kept.
    #[cfg(feature = "planted-faults")]
    pub(crate) fn put_memory(&mut self, kept: Option<Box<dyn std::any::Any + Send>>) {
        if let Some(Ok(kept)) = kept.map(|kept| kept.downcast()) {
            self.conversations = *kept;
            let weights = self.conversations.values().map(|cached| cached.weight);
            self.state_bytes = weights.sum();
        }
    }

    /// Counts records as flushed that are not.
    #[cfg(feature = "planted-faults")]
    pub(crate) fn pretend_flushed(&mut self, records: &[RawRecord]) {
        for record in records {
            let log_time = self.flushed.log_time.advance(record.append_time);
            self.flushed = checkpoint_after(record, log_time);
        }
    }

    async fn check_not_overtaken(&self, attempts: &Attempts) -> Result<(), ProjectError> {
        let (store, partition) = (&self.store, self.partition);
        let stored = until_done(attempts, "read the checkpoint", || {
            store.checkpoint(partition)
        })
        .await?;
        match stored {
            Some(stored) if stored.next_offset > self.stored.next_offset => {
                Err(ProjectError::Overtaken {
                    own: self.stored.next_offset,
                    stored: stored.next_offset,
                })
            }
            _ => Ok(()),
        }
    }

    /// Forgets conversations that were not used lately until the rest is within the budget.
    fn evict(&mut self) {
        if self.state_bytes <= self.state_budget {
            return;
        }
        let mut by_use: Vec<(u64, ConversationId)> = self
            .conversations
            .iter()
            .map(|(id, cached)| (cached.used, id.clone()))
            .collect();
        by_use.sort();
        for (_, id) in by_use {
            // A quarter is freed at once, so that not every batch sorts again.
            if self.state_bytes <= self.state_budget / 4 * 3 {
                break;
            }
            if let Some(cached) = self.conversations.remove(&id) {
                self.state_bytes -= cached.weight;
            }
        }
    }
}

impl<V: View> Cached<V> {
    fn new() -> Self {
        Self {
            conversation: Conversation::default(),
            weight: 0,
            used: 0,
        }
    }
}

/// Records of one conversation in a batch.
#[derive(Default)]
struct Waiting {
    records: Vec<Record>,
    /// How many of them are folded.
    folded: usize,
    refused: Vec<(Record, tidemark_fold::Reason)>,
}

impl Waiting {
    /// Folds records until one asks for parts; gives what it asks for, nothing once all are folded.
    fn fold<V: View>(
        &mut self,
        conversation: &mut Conversation<V>,
        log: &LogSettings,
        settings: &GenerationSettings,
        report: &mut BatchReport,
    ) -> Result<Needs<V>, ProjectError> {
        while let Some(record) = self.records.get(self.folded) {
            match conversation.fold(record, log, settings) {
                Ok(Outcome::Accepted) => report.accepted += 1,
                Ok(Outcome::Duplicate) => report.duplicates += 1,
                Ok(Outcome::Behind) => report.behind += 1,
                Ok(Outcome::Refused(reason)) => self.refused.push((record.clone(), reason)),
                Err(Stop::Needs(needs)) => return Ok(needs),
                Err(stop @ Stop::OtherRecord { .. }) => {
                    return Err(ProjectError::OtherRecord {
                        conversation: record.event.conversation.clone(),
                        found: stop.to_string(),
                    });
                }
                Err(stop @ Stop::Damaged { .. }) => {
                    return Err(ProjectError::Damaged {
                        conversation: record.event.conversation.clone(),
                        offset: record.offset,
                        what: stop.to_string(),
                    });
                }
            }
            self.folded += 1;
        }
        Ok(Needs::<V>::new())
    }
}

fn checkpoint_after(record: &RawRecord, log_time: LogTime) -> Checkpoint {
    Checkpoint {
        next_offset: NextOffset::after(record.offset),
        last: Some(LastRecord {
            offset: record.offset,
            fingerprint: record.fingerprint(),
        }),
        log_time,
    }
}

/// An error with its causes, on one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}
