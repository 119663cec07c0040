//! One record, one verdict: the refusals of `docs/rules.md`, a predicate each, in the order of its table.

use std::collections::BTreeSet;

use tidemark_event::{Event, Kind, MAX_MEMBERS_PER_EVENT, Payload, Seq, UserId};

use crate::{Logged, Settings, past::Past};

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its id entered the dedupe window.
    Accepted {
        /// The seq it took, where it sent a message.
        seq: Option<Seq>,
    },
    /// Its id was in the dedupe window: dropped.
    Duplicate,
    /// It broke a rule of the conversation, by name: one of [`REASONS`].
    Refused(&'static str),
}

/// Whether an event breaks a rule, given what was accepted before it in its conversation.
type Breaks = fn(Past<'_>, &Event) -> bool;

const RULES: [(&str, Breaks); 7] = [
    ("no_such_conversation", no_such_conversation),
    ("exists_with_other_content", exists_with_other_content),
    ("bad_members", bad_members),
    ("direct_is_fixed", direct_is_fixed),
    ("not_a_member", not_a_member),
    ("no_such_seq", no_such_seq),
    ("not_allowed", not_allowed),
];

/// Every reason of [`Verdict::Refused`], in the order in which they are looked for.
pub const REASONS: [&str; RULES.len()] = {
    let mut reasons = [""; RULES.len()];
    let mut index = 0;
    while index < RULES.len() {
        reasons[index] = RULES[index].0;
        index += 1;
    }
    reasons
};

/// Judges one record by what was accepted before it in its conversation.
pub(crate) fn judge(past: Past<'_>, logged: &Logged, settings: &Settings) -> Verdict {
    if is_duplicate(past, logged, settings) {
        return Verdict::Duplicate;
    }
    for (reason, breaks) in RULES {
        if breaks(past, &logged.event) {
            return Verdict::Refused(reason);
        }
    }
    let takes_a_seq = matches!(logged.event.payload, Payload::MessageSent(_));
    Verdict::Accepted {
        seq: takes_a_seq.then(|| past.last().next()),
    }
}

fn is_duplicate(past: Past<'_>, logged: &Logged, settings: &Settings) -> bool {
    let newest_accepted = past.events().rev().take(settings.dedupe_max_ids);
    newest_accepted
        .filter(|earlier| earlier.event.id == logged.event.id)
        .any(|earlier| {
            logged.log_time.millis() - earlier.log_time.millis() < settings.dedupe_window_millis
        })
}

fn no_such_conversation(past: Past<'_>, event: &Event) -> bool {
    past.created().is_none() && !matches!(event.payload, Payload::ConversationCreated(_))
}

/// Against what it was created with, whatever changed since: who repeats a creation did not see the changes.
fn exists_with_other_content(past: Past<'_>, event: &Event) -> bool {
    let (Payload::ConversationCreated(again), Some(first)) = (&event.payload, past.created())
    else {
        return false;
    };
    again.kind != first.kind
        || again.title != first.title
        || again.history != first.history
        || set(&again.members) != set(&first.members)
}

fn bad_members(_: Past<'_>, event: &Event) -> bool {
    match &event.payload {
        Payload::ConversationCreated(created) => {
            let members = set(&created.members);
            members.is_empty()
                || members.len() > MAX_MEMBERS_PER_EVENT
                || (created.kind == Kind::Direct && members.len() != 2)
                || (!event.by_service && !members.contains(&event.actor))
        }
        Payload::MembersAdded(added) => set(&added.members).len() > MAX_MEMBERS_PER_EVENT,
        Payload::MembersRemoved(removed) => set(&removed.members).len() > MAX_MEMBERS_PER_EVENT,
        Payload::ConversationChanged(_)
        | Payload::MessageSent(_)
        | Payload::MessageEdited(_)
        | Payload::MessageRecalled(_)
        | Payload::MessageHidden(_)
        | Payload::ReadAdvanced(_)
        | Payload::MarkedUnread(_)
        | Payload::SessionChanged(_)
        | Payload::HistoryCleared(_)
        | Payload::SessionRemoved(_)
        | Payload::InboxAcked(_) => false,
    }
}

fn direct_is_fixed(past: Past<'_>, event: &Event) -> bool {
    let moves_members = matches!(
        event.payload,
        Payload::MembersAdded(_) | Payload::MembersRemoved(_)
    );
    moves_members
        && past
            .created()
            .is_some_and(|created| created.kind == Kind::Direct)
}

/// A creation is not asked: the first makes its members, and one with the same content changes nothing.
fn not_a_member(past: Past<'_>, event: &Event) -> bool {
    let a_service_may = match event.payload {
        Payload::ConversationCreated(_) => return false,
        Payload::ConversationChanged(_)
        | Payload::MembersAdded(_)
        | Payload::MembersRemoved(_)
        | Payload::MessageSent(_)
        | Payload::MessageEdited(_)
        | Payload::MessageRecalled(_) => true,
        Payload::MessageHidden(_)
        | Payload::ReadAdvanced(_)
        | Payload::MarkedUnread(_)
        | Payload::SessionChanged(_)
        | Payload::HistoryCleared(_)
        | Payload::SessionRemoved(_)
        | Payload::InboxAcked(_) => false,
    };
    let a_service_does = event.by_service && a_service_may;
    !a_service_does && !past.is_member(&event.actor)
}

fn no_such_seq(past: Past<'_>, event: &Event) -> bool {
    let exists = |seq: Seq| Seq::FIRST <= seq && seq <= past.last();
    match &event.payload {
        Payload::MessageSent(sent) => sent.reply_to.is_some_and(|seq| !exists(seq)),
        Payload::MessageEdited(edited) => !exists(edited.seq),
        Payload::MessageRecalled(recalled) => !exists(recalled.seq),
        Payload::MessageHidden(hidden) => !exists(hidden.seq),
        Payload::MarkedUnread(marked) => marked.from_seq == Seq::ZERO,
        Payload::ConversationCreated(_)
        | Payload::ConversationChanged(_)
        | Payload::MembersAdded(_)
        | Payload::MembersRemoved(_)
        | Payload::ReadAdvanced(_)
        | Payload::SessionChanged(_)
        | Payload::HistoryCleared(_)
        | Payload::SessionRemoved(_)
        | Payload::InboxAcked(_) => false,
    }
}

fn not_allowed(_: Past<'_>, event: &Event) -> bool {
    let Payload::MessageSent(sent) = &event.payload else {
        return false;
    };
    sent.content_type == "system" && !event.by_service
}

fn set(users: &[UserId]) -> BTreeSet<&UserId> {
    users.iter().collect()
}
