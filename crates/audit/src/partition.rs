//! One partition of the log: the unit of an audit. Its records go in, in order, and what is wrong comes out.
//!
//! Plain data on both sides: it knows neither Kafka nor the store. What is stored was read before the log's end was
//! asked for, so whatever shows in it is below that end. What is stored contradicts itself or not before a record is
//! looked at ([`crate::invariants`]); whether it is what the log makes it, each conversation tells at the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    ops::ControlFlow,
};

use tidemark_event::{
    ConversationId, DecodeError, Fingerprint, LogTime, NextOffset, Offset, Partition,
    UnknownSchema, decode, partition_of,
};
use tidemark_fold::{LogSettings, Outcome, Record, ViewName};
use tidemark_store::{Checkpoint, LastRecord};

use crate::{
    Compared, Difference, FoldError, Invariant, InvariantReport, Records, Scope, Shelf, Shelves,
    UnknownRecord, ViewReport, What,
    compare::field,
    conversation::{Audited, Basis},
    findings::Findings,
    invariants,
    view::AuditedView,
};

/// A record as the log has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawRecord<'r> {
    /// Its offset.
    pub offset: Offset,
    /// When the broker appended it, in milliseconds since 1970 UTC.
    pub append_time: i64,
    /// Its key.
    pub key: Option<&'r [u8]>,
    /// Its value.
    pub value: Option<&'r [u8]>,
}

/// What an audit of one partition found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionReport {
    /// What was looked at, view by view.
    pub views: Vec<ViewReport>,
    /// How often each invariant was looked at.
    pub invariants: Vec<InvariantReport>,
    /// The record at which the partition ends for this release, if it does not know one.
    pub unknown: Option<UnknownRecord>,
    /// How many differences there are.
    pub difference_count: u64,
    /// The first of them.
    pub differences: Vec<Difference>,
}

/// An audit of one partition under way.
#[derive(Debug)]
pub struct PartitionAudit {
    partition: Partition,
    log: LogSettings,
    scope: Scope,
    log_time: LogTime,
    views: Vec<Box<dyn OneView>>,
    misplaced: BTreeSet<ConversationId>,
    findings: Findings,
    /// What is stored and contradicts itself: told last.
    broken: Findings,
    invariants: Vec<InvariantReport>,
    unknown: Option<UnknownRecord>,
}

/// One view of the partition, whichever it is.
trait OneView: Debug + Send {
    fn name(&self) -> ViewName;

    /// The checkpoint: everything below it shows in everything stored.
    fn promised(&self) -> NextOffset;

    /// Takes note of the next record, decodable or not.
    fn note_record(&mut self, newest: NewestRecord, is_undecodable: bool);

    fn fold(&mut self, partition: Partition, record: &Record) -> Result<(), FoldError>;

    fn check_checkpoint(&self, end: NextOffset, findings: &mut Findings);

    /// Says what is wrong with everything else.
    fn finish(self: Box<Self>, unknown_from: Option<Offset>, findings: &mut Findings)
    -> ViewReport;
}

#[derive(Debug)]
struct ViewAudit<V: AuditedView> {
    generation: u16,
    basis: Basis,
    checkpoint: Option<Checkpoint>,
    /// The newest record below the checkpoint.
    newest_below: Option<NewestRecord>,
    conversations: BTreeMap<ConversationId, Audited<V>>,
    records: Records,
}

#[derive(Debug, Clone, Copy)]
struct NewestRecord {
    offset: Offset,
    fingerprint: Fingerprint,
    log_time: LogTime,
}

impl PartitionAudit {
    /// Begins with what is stored of the partition. Lists at most `listed` differences.
    pub fn new(
        partition: Partition,
        log: LogSettings,
        shelves: Shelves,
        scope: &Scope,
        listed: usize,
    ) -> Self {
        let mut broken = Findings::new(partition, listed);
        let invariants = invariants::check(&shelves, scope, &mut broken);
        let Shelves {
            roaming,
            sessions,
            inbox,
            seen,
        } = shelves;
        let basis = |generation, checkpoint: Option<Checkpoint>| Basis {
            log,
            generation,
            promised: checkpoint.map_or(NextOffset::START, |checkpoint| checkpoint.next_offset),
            scope: scope.clone(),
            seen,
        };
        let mut views: Vec<Box<dyn OneView>> = Vec::new();
        if let Some(shelf) = roaming {
            views.push(Box::new(ViewAudit::beside(shelf, basis)));
        }
        if let Some(shelf) = sessions {
            views.push(Box::new(ViewAudit::beside(shelf, basis)));
        }
        if let Some(shelf) = inbox {
            views.push(Box::new(ViewAudit::beside(shelf, basis)));
        }
        Self {
            partition,
            log,
            scope: scope.clone(),
            log_time: LogTime::START,
            views,
            misplaced: BTreeSet::new(),
            findings: Findings::new(partition, listed),
            broken,
            invariants,
            unknown: None,
        }
    }

    /// Folds the next record. Breaks off where this release does not know what comes.
    ///
    /// # Errors
    /// [`FoldError`].
    pub fn fold(&mut self, raw: &RawRecord<'_>) -> Result<ControlFlow<()>, FoldError> {
        let decoded = decode(raw.key, raw.value);
        if let Err(DecodeError::UnknownSchema(unknown)) = decoded {
            return self.stop_at(raw.offset, unknown);
        }
        self.log_time = self.log_time.advance(raw.append_time);
        let newest = NewestRecord {
            offset: raw.offset,
            fingerprint: Fingerprint::of(raw.key, raw.value, raw.append_time),
            log_time: self.log_time,
        };
        for view in &mut self.views {
            view.note_record(newest, decoded.is_err());
        }
        let Ok(event) = decoded else {
            return Ok(ControlFlow::Continue(()));
        };
        if !self.is_placed(&event.conversation, raw.offset)
            || !self.scope.admits_conversation(&event.conversation)
        {
            return Ok(ControlFlow::Continue(()));
        }
        let record = Record {
            offset: raw.offset,
            log_time: self.log_time,
            fingerprint: newest.fingerprint,
            event,
        };
        for view in &mut self.views {
            view.fold(self.partition, &record)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Says what is wrong, the log being folded up to its end.
    pub fn finish(mut self, end: NextOffset) -> PartitionReport {
        let unknown_from = self.unknown.as_ref().map(|unknown| unknown.offset);
        for view in &self.views {
            view.check_checkpoint(end, &mut self.findings);
        }
        let mut views = Vec::new();
        for view in self.views {
            views.push(view.finish(unknown_from, &mut self.findings));
        }
        self.findings.append(self.broken);
        PartitionReport {
            views,
            invariants: self.invariants,
            unknown: self.unknown,
            difference_count: self.findings.count,
            differences: self.findings.listed,
        }
    }

    /// The log ends here for this release, unless a view has gone beyond.
    fn stop_at(
        &mut self,
        offset: Offset,
        source: UnknownSchema,
    ) -> Result<ControlFlow<()>, FoldError> {
        let beyond = self
            .views
            .iter()
            .find(|view| !view.promised().admits(offset));
        if let Some(view) = beyond {
            return Err(FoldError::UnknownSchema {
                partition: self.partition,
                offset,
                view: view.name(),
                source,
            });
        }
        self.unknown = Some(UnknownRecord {
            partition: self.partition,
            offset,
            schema: source.to_string(),
        });
        Ok(ControlFlow::Break(()))
    }

    /// Whether the conversation's records belong into this partition: else no reader will look here for it.
    fn is_placed(&mut self, conversation: &ConversationId, offset: Offset) -> bool {
        let Some(partitions) = std::num::NonZeroU16::new(self.log.partitions) else {
            return true;
        };
        let wanted = partition_of(conversation, partitions);
        if wanted == self.partition {
            return true;
        }
        if let Some(first) = self.views.first()
            && self.scope.admits_conversation(conversation)
            && self.misplaced.insert(conversation.clone())
        {
            // It concerns no view more than another.
            let of = (first.name(), Invariant::Placement);
            let key = format!("the record at offset {offset}");
            let told = (format!("partition {wanted}"), format!("{}", self.partition));
            self.findings
                .note_broken(of, conversation, key, Some(offset), told);
        }
        false
    }
}

impl<V: AuditedView> ViewAudit<V> {
    fn beside(
        shelf: Shelf<V>,
        basis: impl FnOnce(tidemark_fold::GenerationSettings, Option<Checkpoint>) -> Basis,
    ) -> Self {
        let Shelf {
            generation,
            settings,
            checkpoint,
            conversations,
            misplaced: _,
        } = shelf;
        let basis = basis(settings, checkpoint);
        let conversations = conversations
            .into_iter()
            .filter(|(conversation, _)| basis.scope.admits_conversation(conversation))
            .map(|(conversation, stored)| (conversation, Audited::beside(stored, &basis.scope)))
            .collect();
        Self {
            generation,
            basis,
            checkpoint,
            newest_below: None,
            conversations,
            records: Records::default(),
        }
    }
}

impl<V: AuditedView> OneView for ViewAudit<V> {
    fn name(&self) -> ViewName {
        V::NAME
    }

    fn promised(&self) -> NextOffset {
        self.basis.promised
    }

    fn note_record(&mut self, newest: NewestRecord, is_undecodable: bool) {
        self.records.read += 1;
        self.records.undecodable += u64::from(is_undecodable);
        if !self.basis.promised.admits(newest.offset) {
            self.newest_below = Some(newest);
        }
    }

    fn fold(&mut self, partition: Partition, record: &Record) -> Result<(), FoldError> {
        let conversation = &record.event.conversation;
        let audited = match self.conversations.get_mut(conversation) {
            Some(audited) => audited,
            None => self.conversations.entry(conversation.clone()).or_default(),
        };
        match audited.fold(record, &self.basis) {
            Ok(Outcome::Accepted | Outcome::Behind) => self.records.accepted += 1,
            Ok(Outcome::Duplicate) => self.records.duplicates += 1,
            Ok(Outcome::Refused(_)) => self.records.refused += 1,
            Err(what) => {
                return Err(FoldError::Stopped {
                    partition,
                    view: V::NAME,
                    conversation: conversation.clone(),
                    offset: record.offset,
                    what,
                });
            }
        }
        Ok(())
    }

    /// Holds the checkpoint against the newest record below it. The view was folded from this log only if it has that
    /// record, and passed over none.
    fn check_checkpoint(&self, end: NextOffset, findings: &mut Findings) {
        let Some(checkpoint) = &self.checkpoint else {
            return;
        };
        let next = checkpoint.next_offset;
        let last = checkpoint.last;
        let told = |offset: Option<Offset>| match offset {
            Some(offset) => offset.to_string(),
            None => "none".to_owned(),
        };
        let wanted_offset = self.newest_below.map(|newest| newest.offset);
        let last_offset = last.map(|LastRecord { offset, .. }| offset);
        let difference = if next > end {
            field("next_offset", format!("at most {end}"), next)
        } else if wanted_offset != last_offset {
            field("last_offset", told(wanted_offset), told(last_offset))
        } else if let (Some(newest), Some(last)) = (self.newest_below, last) {
            if newest.fingerprint != last.fingerprint {
                field("fingerprint", newest.fingerprint, last.fingerprint)
            } else if newest.log_time != checkpoint.log_time {
                let millis = |time: LogTime| time.millis();
                field(
                    "log_time",
                    millis(newest.log_time),
                    millis(checkpoint.log_time),
                )
            } else {
                return;
            }
        } else {
            return;
        };
        let key = || "checkpoint".to_owned();
        findings.note(V::NAME, None, key, last_offset, What::Differs(difference));
    }

    fn finish(
        self: Box<Self>,
        unknown_from: Option<Offset>,
        findings: &mut Findings,
    ) -> ViewReport {
        let mut conversations = 0;
        let mut compared = Compared::default();
        for (conversation, audited) in self.conversations {
            conversations += u64::from(audited.exists());
            compared += audited.finish(&conversation, &self.basis, unknown_from, findings);
        }
        ViewReport {
            view: V::NAME,
            generation: self.generation,
            conversations,
            compared,
            records: self.records,
        }
    }
}
