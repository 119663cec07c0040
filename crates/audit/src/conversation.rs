//! One conversation of one view: folded record by record, beside what the store holds of it.
//!
//! The fold is the view's own, given no state but what it made itself. What it makes is taken out of it as it goes, so
//! that every version that is stored somewhere is met ([`crate::tracked`]). To take it out after every record would
//! cost a look at every member each time, so it waits until a version that is stored may be replaced: [`Audited::capture`].

use std::collections::{BTreeMap, BTreeSet};

use tidemark_event::{ConversationId, EventId, NextOffset, Offset, UserId};
use tidemark_fold::{
    AcceptedId, Applied, Conversation, GenerationSettings, Head, LogSettings, Member, Need, Needs,
    Outcome, PieceNo, Record, Stop, Supply,
};

use crate::{
    Compared, Scope, Seen, What,
    compare::first_difference,
    findings::Findings,
    shelf::StoredConversation,
    tracked::{Allowance, Tracked, TrackedParts},
    view::AuditedView,
};

/// How far a clock may be off, in milliseconds, and a copy's expiry with it: an hour.
pub(crate) const EXPIRY_SLACK_MILLIS: i64 = 60 * 60 * 1_000;

/// The most times that a fold may ask for parts before it has folded a record. It asks for pieces, then for rows.
const MAX_ASKS: usize = 16;

/// What an audit of one view of one partition rests on.
#[derive(Debug, Clone)]
pub(crate) struct Basis {
    pub(crate) log: LogSettings,
    pub(crate) generation: GenerationSettings,
    /// The checkpoint: everything below it shows in everything stored.
    pub(crate) promised: NextOffset,
    pub(crate) scope: Scope,
    pub(crate) seen: Seen,
}

/// One conversation of one view.
#[derive(Debug)]
pub(crate) struct Audited<V: AuditedView> {
    fold: Conversation<V>,
    /// The newest versions of rows that the fold forgets once they are taken out.
    rows: BTreeMap<V::RowKey, V::Row>,
    pieces: BTreeMap<V::PieceKey, V::Piece>,
    ids: BTreeMap<PieceNo, Vec<AcceptedId>>,
    head_tracked: Tracked<Head<V::Extra>>,
    members_tracked: TrackedParts<UserId, Member>,
    rows_tracked: TrackedParts<V::RowKey, V::Row>,
    pieces_tracked: TrackedParts<V::PieceKey, V::Piece>,
    ids_stored: BTreeMap<PieceNo, Vec<AcceptedId>>,
    /// Whether ids and pieces were looked for: not without a head to name them.
    is_head_stored: bool,
    /// The applied offsets of all that is stored of rows, members and pieces.
    wanted: BTreeSet<Offset>,
    /// Versions were made that are not taken out yet.
    is_pending: bool,
    /// One of them may be stored.
    is_wanted_pending: bool,
    /// Records beyond the checkpoint are being folded.
    is_beyond_promise: bool,
}

impl<V: AuditedView> Default for Audited<V> {
    fn default() -> Self {
        Self::beside(StoredConversation::default(), &Scope::default())
    }
}

impl<V: AuditedView> Audited<V> {
    /// Begins with what is stored, as far as it is in scope.
    pub(crate) fn beside(stored: StoredConversation<V>, scope: &Scope) -> Self {
        let StoredConversation {
            head,
            members,
            ids,
            pieces,
            rows,
        } = stored;
        let is_everybodys = scope.user.is_none();
        let is_head_stored = head.is_some() && is_everybodys;
        let members: Vec<_> = members
            .into_iter()
            .filter(|(user, _)| scope.admits_user(Some(user)))
            .map(|(user, member)| (user, member.applied, member))
            .collect();
        let rows: Vec<_> = rows
            .into_iter()
            .filter(|(key, _)| scope.admits_user(V::user_of(key)))
            .map(|(key, row)| (key, row.applied(), row))
            .collect();
        let pieces: Vec<_> = pieces
            .into_iter()
            .filter(|_| is_everybodys)
            .map(|(key, piece)| (key, piece.applied(), piece))
            .collect();
        let wanted = (members.iter().map(|(_, applied, _)| *applied))
            .chain(rows.iter().map(|(_, applied, _)| *applied))
            .chain(pieces.iter().map(|(_, applied, _)| *applied))
            .collect();
        Self {
            fold: Conversation::default(),
            rows: BTreeMap::new(),
            pieces: BTreeMap::new(),
            ids: BTreeMap::new(),
            head_tracked: match head.filter(|_| is_everybodys) {
                Some(head) => Tracked::stored(head.applied, head),
                None => Tracked::default(),
            },
            members_tracked: TrackedParts::stored(members),
            rows_tracked: TrackedParts::stored(rows),
            pieces_tracked: TrackedParts::stored(pieces),
            ids_stored: if is_everybodys { ids } else { BTreeMap::new() },
            is_head_stored,
            wanted,
            is_pending: false,
            is_wanted_pending: false,
            is_beyond_promise: false,
        }
    }

    /// Folds the conversation's next record.
    ///
    /// # Errors
    /// What the fold lacks, though it was given all it had made.
    pub(crate) fn fold(&mut self, record: &Record, basis: &Basis) -> Result<Outcome, String> {
        if basis.promised.admits(record.offset) {
            self.pass_promise(&basis.scope);
        }
        if self.is_wanted_pending && V::may_replace(&record.event.payload) {
            self.capture(&basis.scope);
        }
        let outcome = self.fold_supplied(record, basis)?;
        if outcome == Outcome::Accepted
            && let Some(head) = self.fold.head()
        {
            self.is_pending = true;
            let is_promised = !self.is_beyond_promise;
            if basis.scope.user.is_none() {
                self.head_tracked
                    .note(head.applied, head, is_promised, first_difference);
            }
            let is_wanted = self.wanted.contains(&record.offset);
            self.is_wanted_pending |=
                is_wanted || V::completes_piece(head.last_seq, &basis.generation);
        }
        Ok(outcome)
    }

    /// From here on the checkpoint promises nothing.
    fn pass_promise(&mut self, scope: &Scope) {
        if !self.is_beyond_promise {
            self.capture(scope);
            self.is_beyond_promise = true;
        }
    }

    fn fold_supplied(&mut self, record: &Record, basis: &Basis) -> Result<Outcome, String> {
        for _ in 0..MAX_ASKS {
            match self.fold.fold(record, &basis.log, &basis.generation) {
                Ok(outcome) => return Ok(outcome),
                Err(Stop::Needs(needs)) => self.supply(needs, record.offset),
                Err(stop) => return Err(stop.to_string()),
            }
        }
        Err("the fold asks for parts without end".to_owned())
    }

    /// Answers from what the fold itself has made: what it asks for and has not made is not there.
    fn supply(&mut self, needs: Needs<V>, first: Offset) {
        for need in needs {
            let supply = match need {
                Need::Head => Supply::Head(None),
                Need::Dedupe(no) => {
                    Supply::Dedupe(no, self.ids.get(&no).cloned().unwrap_or_default())
                }
                Need::Member(user) => Supply::Member(user, None),
                Need::AllMembers => Supply::AllMembers(Vec::new()),
                Need::Piece(key) => {
                    let piece = self.pieces.get(&key).cloned();
                    Supply::Piece(key, piece)
                }
                Need::Row(key) => {
                    let row = self.rows.get(&key).cloned();
                    Supply::Row(key, row)
                }
            };
            self.fold.supply(supply, first);
        }
    }

    /// Takes out what the fold has made since the last time, and holds it against what is stored.
    fn capture(&mut self, scope: &Scope) {
        if !self.is_pending {
            return;
        }
        self.is_pending = false;
        self.is_wanted_pending = false;
        let is_promised = !self.is_beyond_promise;
        let changes = self.fold.take_changes();
        for (user, member) in &changes.members {
            if scope.admits_user(Some(user)) {
                let tracked = &mut self.members_tracked;
                tracked.note(user, member.applied, member, is_promised, first_difference);
            }
        }
        for (key, row) in changes.rows {
            if scope.admits_user(V::user_of(&key)) {
                let tracked = &mut self.rows_tracked;
                tracked.note(&key, row.applied(), &row, is_promised, V::row_difference);
            }
            if !V::keeps_in_memory(&key) {
                self.rows.insert(key, row);
            }
        }
        for (key, piece) in changes.pieces {
            if scope.user.is_none() {
                let tracked = &mut self.pieces_tracked;
                tracked.note(&key, piece.applied(), &piece, is_promised, first_difference);
            }
            self.pieces.insert(key, piece);
        }
        for (no, id) in changes.ids {
            self.ids.entry(no).or_default().push(id);
        }
        for no in changes.left {
            self.ids.remove(&no);
        }
    }

    /// Whether the conversation exists, in the log or in the store.
    pub(crate) fn exists(&self) -> bool {
        self.fold.head().is_some()
            || self.is_head_stored
            || self.rows_tracked.count() > 0
            || self.members_tracked.count() > 0
    }

    /// Says what is wrong once the log is folded, and counts what was compared.
    pub(crate) fn finish(
        mut self,
        conversation: &ConversationId,
        basis: &Basis,
        unknown_from: Option<Offset>,
        findings: &mut Findings,
    ) -> Compared {
        self.capture(&basis.scope);
        let mut compared = Compared {
            heads: u64::from(self.head_tracked.is_stored()),
            members: self.members_tracked.count(),
            pieces: self.pieces_tracked.count(),
            rows: self.rows_tracked.count(),
            ids: 0,
        };
        let plain = Allowance {
            may_have_expired: false,
            unknown_from,
        };
        let mut note = |key: &dyn Fn() -> String, applied, what| {
            findings.note(V::NAME, Some(conversation), key, applied, what);
        };
        if let Some((applied, what)) = std::mem::take(&mut self.head_tracked).verdict(plain) {
            note(&|| "head".to_owned(), applied, what);
        }
        if self.is_head_stored {
            compared.ids = self.compare_ids(basis, unknown_from, &mut note);
        }
        for (user, applied, what) in self.members_tracked.verdicts(|_| plain) {
            note(&|| format!("member {user}"), applied, what);
        }
        if self.is_head_stored {
            for (key, applied, what) in self.pieces_tracked.verdicts(|_| plain) {
                note(&|| V::piece_name(&key), applied, what);
            }
        }
        let allowance = |key: &V::RowKey| Allowance {
            may_have_expired: V::expires_at(key, &basis.generation)
                .is_some_and(|at| at <= basis.seen.to.saturating_add(EXPIRY_SLACK_MILLIS)),
            unknown_from,
        };
        for (key, applied, what) in self.rows_tracked.verdicts(allowance) {
            note(&|| V::row_name(&key), applied, what);
        }
        compared
    }

    /// Holds the ids in those pieces that are still inside the window at the end of the log: no worker can have
    /// deleted them yet.
    fn compare_ids(
        &mut self,
        basis: &Basis,
        unknown_from: Option<Offset>,
        note: &mut impl FnMut(&dyn Fn() -> String, Option<Offset>, What),
    ) -> u64 {
        let live = self.fold.head().map(|head| head.dedupe.live.as_slice());
        let mut compared = 0;
        for span in live.unwrap_or_default() {
            let Some(stored) = self.ids_stored.remove(&span.no) else {
                continue;
            };
            let key = |id: EventId| format!("event {id} in dedupe piece {}", span.no.get());
            let mut folded: BTreeMap<Offset, AcceptedId> = self
                .ids
                .get(&span.no)
                .into_iter()
                .flatten()
                .map(|id| (id.offset, *id))
                .collect();
            compared += stored.len() as u64;
            for found in stored {
                let what = match folded.remove(&found.offset) {
                    Some(wanted) => first_difference(&wanted, &found).map(What::Differs),
                    None if unknown_from.is_some_and(|from| from <= found.offset) => None,
                    None => Some(What::Extra),
                };
                if let Some(what) = what {
                    note(&|| key(found.id), Some(found.offset), what);
                }
            }
            for (offset, id) in folded {
                if !basis.promised.admits(offset) {
                    note(&|| key(id.id), Some(offset), What::Missing);
                }
            }
        }
        compared
    }
}
