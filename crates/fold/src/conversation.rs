//! One conversation in memory: folds its records one by one, and gives what is to be written.
//!
//! A conversation begins empty. [`Conversation::fold`] asks for parts by [`Stop::Needs`]; they are supplied as the
//! store holds them, heads first, then pieces, then rows, which is the reverse of the order they are written in. A
//! record whose fold stopped has changed nothing and is offered again.

use std::collections::BTreeMap;

use tidemark_event::{Fingerprint, Offset, Seq, UserId};

use crate::{
    Accepted, AcceptedId, Effect, GenerationSettings, Head, LogSettings, Member, Need, Needs,
    PieceNo, Reason, Record, Scene, View,
    dedupe::{PieceIds, is_duplicate},
    judge::{self, judge_first},
    parts::{Members, Parts},
};

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted and folded.
    Accepted,
    /// An event with this id was accepted before: dropped.
    Duplicate,
    /// Refused: belongs in the dead letters.
    Refused(Reason),
    /// The head has folded it already: a crash came between head and checkpoint.
    Behind,
}

/// Why a record could not be folded. The conversation is as it was before the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop<V: View> {
    /// These parts are to be supplied first.
    Needs(Needs<V>),
    /// The head was folded from another record than the log now holds at that offset.
    OtherRecord {
        /// The head's applied offset.
        applied: Offset,
        /// The fingerprint that the head keeps.
        wanted: Fingerprint,
        /// The fingerprint of the record there; none where the log has gone past without it.
        found: Option<Fingerprint>,
    },
    /// The store lacks a part that must be there.
    Damaged {
        /// Which part.
        what: String,
    },
}

/// A part of a conversation as the store holds it: the answer to a [`Need`].
#[derive(Debug, Clone)]
pub enum Supply<V: View> {
    /// The head; none where the conversation does not exist.
    Head(Option<Head<V::Extra>>),
    /// All ids of a dedupe piece.
    Dedupe(PieceNo, Vec<AcceptedId>),
    /// One member, if they ever were.
    Member(UserId, Option<Member>),
    /// Every member, former ones too.
    AllMembers(Vec<(UserId, Member)>),
    /// A piece of the view's own, if there is one.
    Piece(V::PieceKey, Option<V::Piece>),
    /// A row, if there is one.
    Row(V::RowKey, Option<V::Row>),
}

/// What folding has changed since it was last taken, to be written in the order of rule 4: rows, then members, ids and
/// pieces, then the head.
#[derive(Debug, Clone)]
pub struct Changes<V: View> {
    /// Rows, each whole.
    pub rows: Vec<(V::RowKey, V::Row)>,
    /// Member pieces.
    pub members: Vec<(UserId, Member)>,
    /// Accepted ids, to be appended to their dedupe pieces.
    pub ids: Vec<(PieceNo, AcceptedId)>,
    /// Pieces of the view's own.
    pub pieces: Vec<(V::PieceKey, V::Piece)>,
    /// The head, if any record was accepted.
    pub head: Option<Head<V::Extra>>,
    /// Dedupe pieces that have left the window: may be deleted once the checkpoint is acknowledged.
    pub left: Vec<PieceNo>,
}

impl<V: View> Changes<V> {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        let Self {
            rows,
            members,
            ids,
            pieces,
            head,
            left: _,
        } = self;
        rows.is_empty()
            && members.is_empty()
            && ids.is_empty()
            && pieces.is_empty()
            && head.is_none()
    }
}

#[derive(Debug, Clone)]
enum HeadSlot<Extra> {
    NotLoaded,
    Absent,
    Present(Box<Head<Extra>>),
}

/// One conversation of one view, as far as it is in memory.
#[derive(Debug, Clone)]
pub struct Conversation<V: View> {
    head: HeadSlot<V::Extra>,
    is_head_dirty: bool,
    /// The record that a loaded head has folded but this worker has not met yet.
    awaited: Option<(Offset, Fingerprint)>,
    dedupe: BTreeMap<PieceNo, PieceIds>,
    new_ids: Vec<(PieceNo, AcceptedId)>,
    left: Vec<PieceNo>,
    members: Members,
    rows: Parts<V::RowKey, V::Row>,
    pieces: Parts<V::PieceKey, V::Piece>,
}

impl<V: View> Default for Conversation<V> {
    fn default() -> Self {
        Self {
            head: HeadSlot::NotLoaded,
            is_head_dirty: false,
            awaited: None,
            dedupe: BTreeMap::new(),
            new_ids: Vec::new(),
            left: Vec::new(),
            members: Members(Parts::not_loaded()),
            rows: Parts::not_loaded(),
            pieces: Parts::not_loaded(),
        }
    }
}

impl<V: View> Conversation<V> {
    /// Folds one record of this conversation. Records come in offset order; one below the head is passed by.
    ///
    /// # Errors
    /// [`Stop`]: nothing was changed.
    pub fn fold(
        &mut self,
        record: &Record,
        log: &LogSettings,
        generation: &GenerationSettings,
    ) -> Result<Outcome, Stop<V>> {
        let applied = match &self.head {
            HeadSlot::NotLoaded => return Err(Stop::Needs(Needs::<V>::from([Need::Head]))),
            HeadSlot::Absent => return self.fold_first(record, log, generation),
            HeadSlot::Present(head) => head.applied,
        };
        self.check_awaited(record)?;
        if record.offset <= applied {
            return Ok(Outcome::Behind);
        }
        self.fold_next(record, log, generation)
    }

    fn fold_first(
        &mut self,
        record: &Record,
        log: &LogSettings,
        generation: &GenerationSettings,
    ) -> Result<Outcome, Stop<V>> {
        let (created, effect) = match judge_first(&record.event) {
            Err(reason) => return Ok(Outcome::Refused(reason)),
            Ok(Effect::Created(created, members)) => (created, Effect::Created(created, members)),
            Ok(_) => return Ok(Outcome::Refused(Reason::NoSuchConversation)),
        };
        let accepted = Accepted {
            offset: record.offset,
            log_time: record.log_time,
            event: &record.event,
            effect,
        };
        let mut head = Head {
            applied: record.offset,
            fingerprint: record.fingerprint,
            log_time: record.log_time,
            last_seq: Seq::ZERO,
            kind: created.kind,
            title: created.title.clone(),
            history: created.history,
            creation: judge::creation_digest(created),
            members: 0,
            dedupe: crate::DedupeIndex::default(),
            extra: V::begin(&accepted),
        };
        let mut scene = Scene {
            settings: generation,
            head: &mut head,
            members: &self.members,
            rows: &mut self.rows,
            pieces: &mut self.pieces,
        };
        V::apply(&accepted, &mut scene)?;
        self.head = HeadSlot::Present(Box::new(head));
        self.commit(record, &accepted, log, generation);
        Ok(Outcome::Accepted)
    }

    fn fold_next(
        &mut self,
        record: &Record,
        log: &LogSettings,
        generation: &GenerationSettings,
    ) -> Result<Outcome, Stop<V>> {
        let HeadSlot::Present(head) = &mut self.head else {
            return Err(Stop::Needs(Needs::<V>::from([Need::Head])));
        };
        let missing: Needs<V> = head
            .dedupe
            .live
            .iter()
            .filter(|span| !self.dedupe.contains_key(&span.no))
            .map(|span| Need::Dedupe(span.no))
            .collect();
        if !missing.is_empty() {
            return Err(Stop::Needs(missing));
        }
        let event = &record.event;
        let at = (record.offset, record.log_time);
        if self
            .dedupe
            .values()
            .any(|piece| is_duplicate(piece, log.dedupe, head.dedupe.accepted, event.id, at))
        {
            return Ok(Outcome::Duplicate);
        }
        let effect = match judge::judge::<V>(record, head, &self.members)? {
            Ok(effect) => effect,
            Err(reason) => return Ok(Outcome::Refused(reason)),
        };
        let accepted = Accepted {
            offset: record.offset,
            log_time: record.log_time,
            event,
            effect,
        };
        let missing_actor = matches!(accepted.effect, Effect::Hidden(_) | Effect::Cleared(_))
            && !self.members.knows(&event.actor);
        if missing_actor {
            return Err(Stop::Needs(Needs::<V>::from([Need::Member(
                event.actor.clone(),
            )])));
        }
        let mut scene = Scene {
            settings: generation,
            head,
            members: &self.members,
            rows: &mut self.rows,
            pieces: &mut self.pieces,
        };
        V::apply(&accepted, &mut scene)?;
        self.commit(record, &accepted, log, generation);
        Ok(Outcome::Accepted)
    }

    /// Does what every view does alike with an accepted event: members, head, dedupe.
    fn commit(
        &mut self,
        record: &Record,
        accepted: &Accepted<'_>,
        log: &LogSettings,
        generation: &GenerationSettings,
    ) {
        let HeadSlot::Present(head) = &mut self.head else {
            return;
        };
        let offset = record.offset;
        let actor = &record.event.actor;
        let members = &mut self.members.0;
        match &accepted.effect {
            Effect::Created(_, users) => {
                for user in users {
                    members.put(user.clone(), Member::joining(offset, Seq::FIRST, false));
                }
                head.members = count(users.len());
            }
            Effect::Joined {
                users,
                since,
                opens,
            } => {
                for user in users {
                    if members.get(user).is_none() {
                        members.put(user.clone(), Member::joining(offset, *since, *opens));
                    } else {
                        members.change(user, offset, |member| member.join(offset, *since, *opens));
                    }
                }
                head.members = head.members.saturating_add(count(users.len()));
            }
            Effect::Left { users, until } => {
                for user in users {
                    members.change(user, offset, |member| member.leave(offset, *until));
                }
                head.members = head.members.saturating_sub(count(users.len()));
            }
            Effect::Changed { title, history } => {
                if let Some(title) = title {
                    head.title = (*title).to_owned();
                }
                head.history = history.unwrap_or(head.history);
            }
            Effect::Sent { seq, .. } => head.last_seq = *seq,
            Effect::Hidden(seq) => {
                members.change(actor, offset, |member| member.hide(offset, *seq))
            }
            Effect::Cleared(to) => {
                members.change(actor, offset, |member| member.clear(offset, *to))
            }
            Effect::Nothing
            | Effect::Edited(_)
            | Effect::Recalled(_)
            | Effect::Read(_)
            | Effect::MarkedUnread(_)
            | Effect::Settings(_)
            | Effect::Removed(_)
            | Effect::Acked { .. } => {}
        }
        head.applied = offset;
        head.fingerprint = record.fingerprint;
        head.log_time = record.log_time;
        let (piece, id, left) = head.dedupe.accept(
            log.dedupe,
            generation.piece_ids,
            record.event.id,
            (offset, record.log_time),
            accepted.effect.seq(),
        );
        self.dedupe
            .entry(piece)
            .or_default()
            .entry(id.id)
            .or_default()
            .push(id);
        self.new_ids.push((piece, id));
        for no in left {
            self.dedupe.remove(&no);
            self.left.push(no);
        }
        self.is_head_dirty = true;
    }

    /// Holds the record that a loaded head was folded from against the one the log has.
    fn check_awaited(&mut self, record: &Record) -> Result<(), Stop<V>> {
        let Some((applied, wanted)) = self.awaited else {
            return Ok(());
        };
        let found = match record.offset.cmp(&applied) {
            std::cmp::Ordering::Less => return Ok(()),
            std::cmp::Ordering::Equal => Some(record.fingerprint),
            std::cmp::Ordering::Greater => None,
        };
        if found != Some(wanted) {
            return Err(Stop::OtherRecord {
                applied,
                wanted,
                found,
            });
        }
        self.awaited = None;
        Ok(())
    }

    /// Parts that folding `event` will most likely ask for, to be loaded in one wave with others'.
    pub fn foresee(
        &self,
        event: &tidemark_event::Event,
        generation: &GenerationSettings,
    ) -> Needs<V> {
        let head = match &self.head {
            HeadSlot::NotLoaded => return Needs::<V>::from([Need::Head]),
            HeadSlot::Absent => return Needs::<V>::new(),
            HeadSlot::Present(head) => head,
        };
        let mut needs = V::foresee(event, head, generation);
        needs.insert(Need::Member(event.actor.clone()));
        needs.extend(
            judge::listed(&event.payload)
                .iter()
                .cloned()
                .map(Need::Member),
        );
        needs.extend(head.dedupe.live.iter().map(|span| Need::Dedupe(span.no)));
        if needs.contains(&Need::AllMembers) {
            needs.retain(|need| !matches!(need, Need::Member(_)));
        }
        needs.retain(|need| !self.has(need));
        needs
    }

    fn has(&self, need: &Need<V::RowKey, V::PieceKey>) -> bool {
        match need {
            Need::Head => !matches!(self.head, HeadSlot::NotLoaded),
            Need::Dedupe(no) => self.dedupe.contains_key(no),
            Need::Member(user) => self.members.knows(user),
            Need::AllMembers => self.members.are_complete(),
            Need::Piece(key) => self.pieces.knows(key),
            Need::Row(key) => self.rows.knows(key),
        }
    }

    /// Takes in a part as the store holds it, read at a time when every record from `first` on was still to be folded
    /// by this worker. What is in memory already is at least as new, and stays.
    pub fn supply(&mut self, supply: Supply<V>, first: Offset) {
        match supply {
            Supply::Head(head) => self.supply_head(head, first),
            Supply::Dedupe(no, ids) => {
                self.dedupe.entry(no).or_insert_with(|| {
                    let mut piece = PieceIds::new();
                    for id in ids {
                        piece.entry(id.id).or_default().push(id);
                    }
                    piece
                });
            }
            Supply::Member(user, member) => self.members.0.supply(user, member),
            Supply::AllMembers(members) => self.members.0.supply_all(members),
            Supply::Piece(key, piece) => self.pieces.supply(key, piece),
            Supply::Row(key, row) => self.rows.supply(key, row),
        }
    }

    fn supply_head(&mut self, head: Option<Head<V::Extra>>, first: Offset) {
        if !matches!(self.head, HeadSlot::NotLoaded) {
            return;
        }
        match head {
            Some(head) => {
                self.awaited = (first <= head.applied).then_some((head.applied, head.fingerprint));
                self.head = HeadSlot::Present(Box::new(head));
            }
            None => {
                self.head = HeadSlot::Absent;
                self.members = Members(Parts::all_absent());
                self.rows = Parts::all_absent();
                self.pieces = Parts::all_absent();
            }
        }
    }

    /// Takes out what is to be written. What stays in memory counts as written from here on, so a caller that fails
    /// to write it drops the conversation.
    pub fn take_changes(&mut self) -> Changes<V> {
        let head = match &self.head {
            HeadSlot::Present(head) if self.is_head_dirty => Some((**head).clone()),
            HeadSlot::NotLoaded | HeadSlot::Absent | HeadSlot::Present(_) => None,
        };
        self.is_head_dirty = false;
        Changes {
            rows: self.rows.take_changes(V::keeps_in_memory),
            members: self.members.0.take_changes(|_| true),
            ids: std::mem::take(&mut self.new_ids),
            pieces: self.pieces.take_changes(|_| false),
            head,
            left: std::mem::take(&mut self.left),
        }
    }

    /// The head, where it is loaded and the conversation exists.
    pub fn head(&self) -> Option<&Head<V::Extra>> {
        match &self.head {
            HeadSlot::Present(head) => Some(head),
            HeadSlot::NotLoaded | HeadSlot::Absent => None,
        }
    }

    /// About how many bytes the conversation takes in memory.
    pub fn weight(&self) -> usize {
        const FIXED: usize = 1_024;
        const ID: usize = 96;
        FIXED
            + self
                .dedupe
                .values()
                .map(|piece| piece.len() * ID)
                .sum::<usize>()
            + self
                .members
                .0
                .weight(|member| 96 + member.intervals.len() * 40 + member.hidden.len() * 16)
            + self.rows.weight(V::weight)
            + self.pieces.weight(|_| 4_096)
    }
}

impl<V: View> std::fmt::Display for Stop<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Needs(needs) => write!(f, "{} parts are not loaded", needs.len()),
            Self::OtherRecord {
                applied,
                wanted,
                found: Some(found),
            } => {
                write!(
                    f,
                    "the record at offset {applied} has fingerprint {found}, but the head was folded from {wanted}"
                )
            }
            Self::OtherRecord {
                applied,
                wanted,
                found: None,
            } => {
                write!(
                    f,
                    "the log has no record of the conversation at offset {applied}, where its head was folded from {wanted}"
                )
            }
            Self::Damaged { what } => write!(f, "the store lacks {what}"),
        }
    }
}

fn count(users: usize) -> u32 {
    u32::try_from(users).unwrap_or(u32::MAX)
}
