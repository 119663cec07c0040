//! All views have the same conversations, with the same last seq.
//!
//! Each accepted event moves every view's head, so heads at the same applied offset are the same. Heads that are both
//! below both checkpoints are as of the same event, whichever it is: they must be at the same offset. Of others it is
//! known that last seq never goes back, and grows by one an event at most.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_event::{ConversationId, NextOffset, Offset, Seq};
use tidemark_fold::{View, ViewName};

use super::{Count, Looked};
use crate::{Invariant, Scope, Shelf, Shelves, StoredConversation, findings::Findings};

/// What is compared of a head.
#[derive(Debug, Clone, Copy)]
struct At {
    applied: Offset,
    last_seq: Seq,
}

/// One view, as far as agreement goes.
struct Voice<'s> {
    view: ViewName,
    heads: BTreeMap<&'s ConversationId, At>,
    /// The checkpoint: everything below it shows in the heads.
    promised: NextOffset,
}

impl<'s> Voice<'s> {
    fn of<V: View>(shelf: &'s Shelf<V>) -> Self {
        let head = |(id, stored): (&'s ConversationId, &'s StoredConversation<V>)| {
            let head = stored.head.as_ref()?;
            let at = At {
                applied: head.applied,
                last_seq: head.last_seq,
            };
            Some((id, at))
        };
        let checkpoint = shelf.checkpoint;
        Self {
            view: V::NAME,
            heads: shelf.conversations.iter().filter_map(head).collect(),
            promised: checkpoint.map_or(NextOffset::START, |checkpoint| checkpoint.next_offset),
        }
    }

    fn promises(&self, offset: Offset) -> bool {
        !self.promised.admits(offset)
    }
}

pub(super) fn check(shelves: &Shelves, scope: &Scope, findings: &mut Findings) -> Count {
    let mut voices = Vec::new();
    voices.extend(shelves.roaming.as_ref().map(Voice::of));
    voices.extend(shelves.sessions.as_ref().map(Voice::of));
    voices.extend(shelves.inbox.as_ref().map(Voice::of));
    let conversations: BTreeSet<&ConversationId> = voices
        .iter()
        .flat_map(|voice| voice.heads.keys().copied())
        .collect();
    let mut count = Count::default();
    for conversation in conversations {
        if !scope.admits_conversation(conversation) {
            continue;
        }
        for (index, one) in voices.iter().enumerate() {
            for other in &voices[index + 1..] {
                count.add(compare(conversation, one, other, findings));
            }
        }
    }
    count
}

fn compare(
    conversation: &ConversationId,
    one: &Voice<'_>,
    other: &Voice<'_>,
    findings: &mut Findings,
) -> Looked {
    match (one.heads.get(conversation), other.heads.get(conversation)) {
        (Some(at), Some(other_at)) => {
            compare_heads(conversation, (one, *at), (other, *other_at), findings)
        }
        (Some(at), None) => look_for_head(conversation, (one, *at), other, findings),
        (None, Some(at)) => look_for_head(conversation, (other, *at), one, findings),
        (None, None) => Looked::PassedOver,
    }
}

fn compare_heads(
    conversation: &ConversationId,
    (one, at): (&Voice<'_>, At),
    (other, other_at): (&Voice<'_>, At),
    findings: &mut Findings,
) -> Looked {
    let both_promise = |offset| one.promises(offset) && other.promises(offset);
    let are_of_one_moment = at.applied == other_at.applied
        || both_promise(at.applied) && both_promise(other_at.applied);
    let do_agree = if are_of_one_moment {
        at.applied == other_at.applied && at.last_seq == other_at.last_seq
    } else {
        let (older, newer) = if at.applied < other_at.applied {
            (at, other_at)
        } else {
            (other_at, at)
        };
        let events = newer.applied.get().abs_diff(older.applied.get());
        let messages = newer.last_seq.get().checked_sub(older.last_seq.get());
        messages.is_some_and(|messages| messages <= events)
    };
    if !do_agree {
        let told = |voice: &Voice<'_>, at: At| {
            format!(
                "last seq {} at {} in {}",
                at.last_seq, at.applied, voice.view
            )
        };
        let told = (told(one, at), told(other, other_at));
        let of = (other.view, Invariant::ViewsAgree);
        findings.note_broken(of, conversation, "head", Some(other_at.applied), told);
    }
    if are_of_one_moment {
        Looked::Checked
    } else {
        Looked::PassedOver
    }
}

/// A view that has come as far as another's head has a head too.
fn look_for_head(
    conversation: &ConversationId,
    (one, at): (&Voice<'_>, At),
    other: &Voice<'_>,
    findings: &mut Findings,
) -> Looked {
    if !other.promises(at.applied) {
        return Looked::PassedOver;
    }
    let told = (
        format!("a head, as {} has at last seq {}", one.view, at.last_seq),
        "none".to_owned(),
    );
    let of = (other.view, Invariant::ViewsAgree);
    findings.note_broken(of, conversation, "head", Some(at.applied), told);
    Looked::Checked
}
