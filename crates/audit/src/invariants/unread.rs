//! A session's numbers are those of the messages above its read position, counted one by one.
//!
//! The messages are roaming's, the membership is sessions' own; both were read after the session and after a head or
//! checkpoint, so it is known whether they show every event up to the session's applied offset. They may show later
//! ones. Whether a message was recalled, or whom it named, before the session or after it is then unknown, and the
//! number must lie between what it would be in either case. A membership that changed later is passed over.
//!
//! Rows of conversations above the fan-out limit keep no such numbers, and are not looked at.

use std::collections::BTreeSet;

use tidemark_event::{ConversationId, Seq, UserId};
use tidemark_fold::{
    Member, Stored, ViewName,
    roaming::Roaming,
    sessions::{Mode, Session, Sessions},
};

use super::{Count, Looked};
use crate::{Invariant, Scope, Shelf, StoredConversation, findings::Findings};

const OF: (ViewName, Invariant) = (ViewName::Sessions, Invariant::UnreadIsCounted);

/// What the messages say of a session, as a range where that is all that is known.
#[derive(Debug, Default)]
struct Counted {
    unread: (u64, u64),
    mentions: (u64, u64),
    /// The newest that addresses everybody; not known where it may have been recalled.
    mentioned_all: Option<Option<Seq>>,
}

pub(super) fn check(
    roaming: &Shelf<Roaming>,
    sessions: &Shelf<Sessions>,
    scope: &Scope,
    findings: &mut Findings,
) -> Count {
    let mut count = Count::default();
    for (conversation, stored) in &sessions.conversations {
        if !scope.admits_conversation(conversation) {
            continue;
        }
        for (user, row) in &stored.rows {
            if row.mode != Mode::FannedOut || !scope.admits_user(Some(user)) {
                continue;
            }
            let is_covered = sessions.covers(conversation, row.applied)
                && roaming.covers(conversation, row.applied);
            let messages = roaming.conversations.get(conversation);
            let counted = match (stored.members.get(user), messages) {
                (Some(member), Some(messages)) if is_covered && member.applied <= row.applied => {
                    count_messages(user, row, member, messages)
                }
                _ => None,
            };
            count.add(match counted {
                Some(counted) => {
                    compare(conversation, user, row, &counted, findings);
                    Looked::Checked
                }
                None => Looked::PassedOver,
            });
        }
    }
    count
}

/// Counts, unless a message is missing.
fn count_messages(
    user: &UserId,
    row: &Session,
    member: &Member,
    messages: &StoredConversation<Roaming>,
) -> Option<Counted> {
    let mut counted = Counted {
        mentioned_all: Some(None),
        ..Counted::default()
    };
    let present = member.intervals.last().filter(|last| last.left.is_none());
    let Some(present) = present else {
        return Some(counted);
    };
    let first = (row.read_seq.get() + 1)
        .max(member.cleared_to.get() + 1)
        .max(present.since.get());
    for seq in (first..=row.last_seq.get()).map(Seq::new) {
        let stored = messages.rows.get(&seq)?;
        count_message(user, row, &member.hidden, stored, &mut counted);
    }
    Some(counted)
}

fn count_message(
    user: &UserId,
    row: &Session,
    hidden: &BTreeSet<Seq>,
    stored: &Stored,
    counted: &mut Counted,
) {
    let message = &stored.message;
    let never_counts = message.sender == *user
        || message.silent
        || message.content_type == "system"
        || hidden.contains(&message.seq);
    // Edits and recalls that the session may not have seen.
    let is_later = stored.applied > row.applied;
    if never_counts || message.recalled && !is_later {
        return;
    }
    let may_not_count = message.recalled;
    let is_named = message.mentions.contains(user);
    let may_be_named = is_later && message.edited_at.is_some();

    counted.unread.0 += u64::from(!may_not_count);
    counted.unread.1 += 1;
    counted.mentions.0 += u64::from(!may_not_count && is_named && !may_be_named);
    counted.mentions.1 += u64::from(is_named || may_be_named);
    if message.mention_all {
        counted.mentioned_all = (!may_not_count).then_some(Some(message.seq));
    }
}

fn compare(
    conversation: &ConversationId,
    user: &UserId,
    row: &Session,
    counted: &Counted,
    findings: &mut Findings,
) {
    let mut note = |name: &str, wanted: String, found: String| {
        let told = (format!("{wanted} {name}"), found);
        let key = format!("session of {user}");
        findings.note_broken(OF, conversation, key, Some(row.applied), told);
    };
    let numbers = [
        ("unread", counted.unread, row.tally.unread),
        ("unread mentions", counted.mentions, row.tally.mention_count),
    ];
    for (name, (least, most), found) in numbers {
        if found < least || most < found {
            let wanted = if least == most {
                least.to_string()
            } else {
                format!("{least} to {most}")
            };
            note(name, wanted, found.to_string());
        }
    }
    if let Some(wanted) = counted.mentioned_all
        && wanted != row.tally.mentioned_all
    {
        let told = |seq: Option<Seq>| seq.map_or_else(|| "none".to_owned(), |seq| seq.to_string());
        note(
            "as the newest that mentions all",
            told(wanted),
            told(row.tally.mentioned_all),
        );
    }
}
