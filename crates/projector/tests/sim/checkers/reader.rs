//! Verifies at any moment what a reader sees that takes the head first: every conversation's head says no more than
//! the rows bear out, and what is ahead of it is newer than it.
//!
//! Reads by the production readers, from what is stored. Not verified here: what the rows say; `writes` does that.

use tidemark_event::{Seq, UserId};
use tidemark_fold::{
    inbox::{Inbox, InboxKey, InboxRow},
    roaming::Roaming,
    sessions::{Mode, Sessions},
};
use tidemark_proof::Shelf;

/// What a view's rows must bear out.
pub(crate) trait Reader: Sized + tidemark_fold::View {
    /// Panics where the rows of a conversation, read after its head, are not what the head says.
    fn check(shelf: &Shelf<Self>);
}

impl Reader for Roaming {
    fn check(shelf: &Shelf<Self>) {
        for (id, head) in &shelf.heads {
            for seq in (1..=head.last_seq.get()).map(Seq::new) {
                assert!(
                    shelf.rows.contains_key(&(id.clone(), seq)),
                    "a reader of {id} finds no message {seq}, though the last is {}",
                    head.last_seq
                );
            }
            for ((conversation, seq), row) in &shelf.rows {
                assert!(
                    conversation != id || *seq <= head.last_seq || row.applied > head.applied,
                    "a reader of {id} finds message {seq} beyond the last, {}",
                    head.last_seq
                );
            }
        }
    }
}

impl Reader for Sessions {
    fn check(shelf: &Shelf<Self>) {
        for (id, head) in &shelf.heads {
            let present = shelf.members_of(id).into_iter();
            let present: Vec<UserId> = present
                .filter(|(_, member)| member.is_present())
                .map(|(user, _)| user)
                .collect();
            for user in present {
                let Some(row) = shelf.rows.get(&(id.clone(), user.clone())) else {
                    panic!("a reader of {id} finds no session of its member {user}")
                };
                // A member row ahead of the head may be of somebody who has joined since.
                if row.applied <= head.applied && row.mode == Mode::FannedOut && !row.left {
                    assert_eq!(
                        row.last_seq, head.last_seq,
                        "a reader of {id} finds another last seq in the session of {user}"
                    );
                }
            }
        }
    }
}

impl Reader for Inbox {
    fn check(shelf: &Shelf<Self>) {
        for (id, head) in &shelf.heads {
            for ((conversation, key), row) in &shelf.rows {
                if let (InboxKey::Copy { seq, user, .. }, InboxRow::Copy(copy)) = (key, row) {
                    assert!(
                        conversation != id || *seq <= head.last_seq || copy.applied > head.applied,
                        "a reader of {id} finds a copy of {seq} for {user} beyond the last, {}",
                        head.last_seq
                    );
                }
            }
        }
    }
}
