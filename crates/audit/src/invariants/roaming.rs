//! roaming holds every message from 1 to last, and none beyond that the head should know of.
//!
//! Messages are written before the head that counts them and read after it: up to its last seq none may be missing. One
//! beyond it is a worker's that is about to write the head, or was about to and died, so it is newer than the head.

use tidemark_event::{ConversationId, Offset, Seq};
use tidemark_fold::{ViewName, roaming::Roaming};

use super::Count;
use crate::{Invariant, Scope, Shelf, StoredConversation, findings::Findings};

const OF: (ViewName, Invariant) = (ViewName::Roaming, Invariant::RoamingIsWhole);

pub(super) fn check(roaming: &Shelf<Roaming>, scope: &Scope, findings: &mut Findings) -> Count {
    let mut count = Count::default();
    for (conversation, stored) in &roaming.conversations {
        if !scope.admits_conversation(conversation) {
            continue;
        }
        count.checked += 1;
        let last = match &stored.head {
            Some(head) => {
                find_holes(conversation, stored, head.last_seq, findings);
                head.last_seq
            }
            None => Seq::ZERO,
        };
        let should_be_known = |applied: Offset| match &stored.head {
            Some(head) => applied <= head.applied,
            None => roaming.promises(applied),
        };
        for (seq, row) in stored.rows.range(last.next()..) {
            if should_be_known(row.applied) {
                let wanted = match &stored.head {
                    Some(_) => format!("no message beyond last seq {last}"),
                    None => "no message without a head".to_owned(),
                };
                let told = (wanted, format!("seq {seq}"));
                findings.note_broken(
                    OF,
                    conversation,
                    format!("seq {seq}"),
                    Some(row.applied),
                    told,
                );
            }
        }
        if stored.rows.contains_key(&Seq::ZERO) {
            let told = ("no message before seq 1".to_owned(), "seq 0".to_owned());
            findings.note_broken(OF, conversation, "seq 0", None, told);
        }
    }
    count
}

/// Names each run of seqs up to `last` of which there is no message.
fn find_holes(
    conversation: &ConversationId,
    stored: &StoredConversation<Roaming>,
    last: Seq,
    findings: &mut Findings,
) {
    let mut next = Seq::FIRST;
    let mut hole = |from: Seq, to: Seq| {
        let key = if from == to {
            format!("seq {from}")
        } else {
            format!("seq {from} to {to}")
        };
        let told = (
            format!("every message up to last seq {last}"),
            "a hole".to_owned(),
        );
        findings.note_broken(OF, conversation, key, None, told);
    };
    if last < Seq::FIRST {
        return;
    }
    for seq in stored.rows.range(Seq::FIRST..=last).map(|(seq, _)| *seq) {
        if next < seq {
            hole(next, seq.previous());
        }
        next = seq.next();
    }
    if next <= last {
        hole(next, last);
    }
}
