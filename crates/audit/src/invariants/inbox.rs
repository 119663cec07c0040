//! inbox holds a copy of exactly what each member may see, while copies are made and have not expired.
//!
//! The head was read first, then places, then copies and roaming's messages. So of each message up to the head's last
//! seq the place tells whether the user was a member when it was sent, and the head whether copies were still made; its
//! copy is there unless it has expired. A copy beyond is of a worker that has not written the head yet, and newer.
//!
//! Clearing and hiding take away no copy: readers leave those out.

use std::collections::BTreeMap;

use tidemark_event::{ConversationId, Offset, Seq, UserId};
use tidemark_fold::{
    Head, Stored, ViewName,
    inbox::{Inbox, InboxExtra, InboxKey, InboxRow, Period, Place},
    roaming::Roaming,
};

use super::Count;
use crate::{
    Invariant, Scope, Seen, Shelf, StoredConversation, compare::first_difference,
    conversation::EXPIRY_SLACK_MILLIS, findings::Findings,
};

const OF: (ViewName, Invariant) = (ViewName::Inbox, Invariant::InboxIsExact);

/// A conversation, and what its copies are held against.
struct Held<'s> {
    id: &'s ConversationId,
    inbox: &'s Shelf<Inbox>,
    head: Option<&'s Head<InboxExtra>>,
    messages: Option<&'s StoredConversation<Roaming>>,
    seen: Seen,
}

/// What one user has of it.
#[derive(Default)]
struct Own<'s> {
    place: Option<&'s Place>,
    copies: BTreeMap<(Seq, Period), &'s Stored>,
}

pub(super) fn check(
    roaming: &Shelf<Roaming>,
    inbox: &Shelf<Inbox>,
    seen: Seen,
    scope: &Scope,
    findings: &mut Findings,
) -> Count {
    let mut count = Count::default();
    for (id, stored) in &inbox.conversations {
        if !scope.admits_conversation(id) {
            continue;
        }
        let held = Held {
            id,
            inbox,
            head: stored.head.as_ref(),
            messages: roaming.conversations.get(id),
            seen,
        };
        for (user, own) in by_user(stored, scope) {
            count.checked += 1;
            held.find_missing(user, &own, findings);
            for ((seq, period), copy) in &own.copies {
                held.check_copy(user, own.place, (*seq, *period), copy, findings);
            }
        }
    }
    count
}

fn by_user<'s>(
    stored: &'s StoredConversation<Inbox>,
    scope: &Scope,
) -> BTreeMap<&'s UserId, Own<'s>> {
    let mut users: BTreeMap<&UserId, Own<'_>> = BTreeMap::new();
    for (key, row) in &stored.rows {
        match (key, row) {
            (InboxKey::Place { user }, InboxRow::Place(place)) => {
                users.entry(user).or_default().place = Some(place);
            }
            (InboxKey::Copy { user, period, seq }, InboxRow::Copy(copy)) => {
                let copies = &mut users.entry(user).or_default().copies;
                copies.insert((*seq, *period), copy);
            }
            // The fold's side of the audit tells of these.
            (InboxKey::Place { .. }, InboxRow::Copy(_))
            | (InboxKey::Copy { .. }, InboxRow::Place(_)) => {}
        }
    }
    users.retain(|user, _| scope.admits_user(Some(user)));
    users
}

impl Held<'_> {
    /// Tells of each message that the user must have a copy of and has not.
    fn find_missing(&self, user: &UserId, own: &Own<'_>, findings: &mut Findings) {
        let (Some(head), Some(place), Some(messages)) = (self.head, own.place, self.messages)
        else {
            return;
        };
        let copied_to = head.extra.copied_to.unwrap_or(head.last_seq);
        for interval in &place.member.intervals {
            let until = interval.left.map_or(head.last_seq, |left| left.until);
            let to = until.min(copied_to).min(head.last_seq);
            if interval.since > to {
                continue;
            }
            // A message that roaming lacks is roaming's to tell of.
            for (seq, message) in messages.rows.range(interval.since..=to) {
                let period = self.period_of(message);
                let may_be_gone =
                    self.expires_at(period) <= self.seen.to.saturating_add(EXPIRY_SLACK_MILLIS);
                if !may_be_gone && !own.copies.contains_key(&(*seq, period)) {
                    let told = (
                        format!("a copy in period {}", period.get()),
                        "none".to_owned(),
                    );
                    self.note(user, *seq, None, told, findings);
                }
            }
        }
    }

    /// Tells of a copy that must not be there, or is not the message.
    fn check_copy(
        &self,
        user: &UserId,
        place: Option<&Place>,
        (seq, period): (Seq, Period),
        copy: &Stored,
        findings: &mut Findings,
    ) {
        let mut note = |wanted: String, found: String| {
            self.note(user, seq, Some(copy.applied), (wanted, found), findings);
        };
        let is_known = match self.head {
            Some(head) => seq <= head.last_seq,
            None => false,
        };
        let should_be_known = match self.head {
            Some(head) => copy.applied <= head.applied,
            None => self.inbox.promises(copy.applied),
        };
        let found = || format!("a copy in period {}", period.get());
        if !is_known {
            if should_be_known {
                let wanted = match self.head {
                    Some(head) => format!("no copy beyond last seq {}", head.last_seq),
                    None => "no copy without a head".to_owned(),
                };
                note(wanted, found());
            }
            return;
        }
        let copied_to = self.head.and_then(|head| head.extra.copied_to);
        let was_member = place.is_some_and(|place| {
            place.member.intervals.iter().any(|interval| {
                interval.since <= seq && interval.left.is_none_or(|left| seq <= left.until)
            })
        });
        if !was_member {
            return note("no copy for who was no member then".to_owned(), found());
        }
        if let Some(to) = copied_to.filter(|to| *to < seq) {
            return note(
                format!("no copy beyond the copy limit, passed at seq {to}"),
                found(),
            );
        }
        let expired_at = self.expires_at(period).saturating_add(EXPIRY_SLACK_MILLIS);
        if expired_at < self.seen.from {
            return note("no copy, as its period has expired".to_owned(), found());
        }
        let message = self.messages.and_then(|messages| messages.rows.get(&seq));
        let Some(message) = message else { return };
        let wanted_period = self.period_of(message);
        if wanted_period != period {
            return note(format!("a copy in period {}", wanted_period.get()), found());
        }
        if message.applied == copy.applied
            && let Some(difference) = first_difference(&message.message, &copy.message)
        {
            let of = |value: String| format!("{} {value}", difference.field);
            note(
                of(format!("{} as in roaming", difference.wanted)),
                of(difference.found.clone()),
            );
        }
    }

    /// The period that a message was logged in.
    fn period_of(&self, message: &Stored) -> Period {
        let period_millis = self.inbox.settings.inbox_period_millis.max(1);
        Period::new(message.message.logged_at.millis().div_euclid(period_millis))
    }

    /// When a period's copies expire, in milliseconds since 1970 UTC.
    fn expires_at(&self, period: Period) -> i64 {
        let settings = &self.inbox.settings;
        let end = period
            .get()
            .saturating_add(1)
            .saturating_mul(settings.inbox_period_millis.max(1));
        end.saturating_add(settings.inbox_ttl_millis)
    }

    fn note(
        &self,
        user: &UserId,
        seq: Seq,
        applied: Option<Offset>,
        told: (String, String),
        findings: &mut Findings,
    ) {
        let key = format!("copy of seq {seq} for {user}");
        findings.note_broken(OF, self.id, key, applied, told);
    }
}
