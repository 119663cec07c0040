//! A session row: one user's view of one conversation, as of the newest event that concerned it.

use std::{collections::BTreeSet, sync::Arc};

use serde::{Deserialize, Serialize};
use tidemark_event::{Kind, LogTime, Offset, Seq};

use super::{MAX_NEWEST_BYTES, PREVIEW_CHARACTERS, SessionsExtra, Tally};
use crate::{Applied, Head, Message};

/// How the rows of a conversation's present members are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Every message brings every row up to date: the row says all.
    FannedOut,
    /// The row says what is the member's own; the rest comes from the head and the blocks: last seq, newest message,
    /// last activity, title, number of members, unread and `mentioned_all`. Mentions by name are in the row.
    Combined,
}

/// The newest message of a conversation, as a row carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newest {
    /// The message; where it is not whole, with the beginning of its body and without mentions.
    pub message: Arc<Message>,
    /// Whether body and mentions are complete: at most [`MAX_NEWEST_BYTES`].
    pub is_whole: bool,
}

impl Newest {
    pub(crate) fn of(message: Message) -> Self {
        let named: usize = message
            .mentions
            .iter()
            .map(|user| user.as_str().len())
            .sum();
        let is_whole = message.body.len() + message.content_type.len() + named <= MAX_NEWEST_BYTES;
        if is_whole {
            return Self {
                message: Arc::new(message),
                is_whole,
            };
        }
        let body = message.body.chars().take(PREVIEW_CHARACTERS).collect();
        let content_type = message
            .content_type
            .chars()
            .take(PREVIEW_CHARACTERS)
            .collect();
        Self {
            message: Arc::new(Message {
                body,
                content_type,
                mentions: Vec::new(),
                ..message
            }),
            is_whole,
        }
    }
}

/// One user's session in one conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The newest event folded into the row.
    pub applied: Offset,
    /// Which of the fields below are kept up to date by messages.
    pub mode: Mode,
    /// Direct or group.
    pub kind: Kind,
    /// The title; empty for none.
    pub title: String,
    /// The newest message of the conversation.
    pub last_seq: Seq,
    /// The newest message, where the user may see it.
    pub newest: Option<Newest>,
    /// Log time of the newest message since the user's latest join; before any, of that join.
    pub last_active: LogTime,
    /// The first seq of the present membership, or of the last one for who left.
    pub since: Seq,
    /// Read up to here.
    pub read_seq: Seq,
    /// What is unread. In [`Mode::Combined`] only the mentions by name are kept.
    pub tally: Tally,
    /// Cleared up to here; 0 for never.
    pub cleared_to: Seq,
    /// Hidden by the user, above `cleared_to`.
    pub hidden: BTreeSet<Seq>,
    /// Direct: the furthest the other has ever read.
    pub peer_read_seq: Seq,
    /// Marked unread by the user, and not read to the end since.
    pub marked_unread: bool,
    /// Listed first.
    pub pinned: bool,
    /// Left out of the total.
    pub muted: bool,
    /// Text begun and not sent; empty for none.
    pub draft: String,
    /// How many members there are.
    pub members: u32,
    /// The user is no member any more: the row is as it was on leaving.
    pub left: bool,
    /// Off the list until last_seq is beyond this.
    pub removed_at: Option<Seq>,
}

impl Applied for Session {
    fn applied(&self) -> Offset {
        self.applied
    }

    fn stamp(&mut self, offset: Offset) {
        self.applied = offset;
    }
}

impl Session {
    /// The first seq that can count as unread.
    pub fn first_counting(&self) -> Seq {
        super::first_counting(self.read_seq, self.cleared_to, self.since)
    }

    /// The row as a reader sees it: in [`Mode::Combined`] what messages do not bring up to date is taken from the
    /// head. Unread and `mentioned_all` are then still to be counted from the blocks.
    #[must_use]
    pub fn completed(&self, head: &Head<SessionsExtra>) -> Self {
        let mut row = self.clone();
        if self.mode == Mode::FannedOut {
            return row;
        }
        row.mode = Mode::FannedOut;
        row.title.clone_from(&head.title);
        row.last_seq = head.last_seq;
        row.members = head.members;
        if let Some(newest) = &head.extra.newest {
            let is_since_join = newest.message.seq >= self.since;
            let is_shown = self
                .newest
                .as_ref()
                .is_some_and(|shown| shown.message.seq == newest.message.seq);
            if is_since_join || is_shown {
                row.newest = Some(newest.clone());
            }
            if is_since_join {
                row.last_active = head.extra.last_active;
            }
        }
        row
    }

    /// Whether the conversation is on the user's list, its newest message being `last_seq`.
    pub fn is_listed(&self, last_seq: Seq) -> bool {
        self.removed_at.is_none_or(|at| last_seq > at)
    }

    /// Whether the row shows `message` as the newest: the user has not cleared or hidden it. Membership was judged
    /// when it was put there.
    pub fn shows(&self, seq: Seq) -> bool {
        seq > self.cleared_to && !self.hidden.contains(&seq)
    }

    /// Whether `seq` is above all that keeps a message from counting for this user.
    pub(super) fn counts(&self, seq: Seq) -> bool {
        !self.left && seq >= self.first_counting() && !self.hidden.contains(&seq)
    }
}
