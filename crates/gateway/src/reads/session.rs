//! One session as its user reads it, made of a row and, in large conversations, of head and blocks. No I/O.
//!
//! A row in [`Mode::FannedOut`] says all. One in [`Mode::Combined`] is completed from the conversation's head, and what
//! is unread counted from its blocks: all as of the head's newest event. That is one state only where the row was read
//! after the head and is not ahead of it: then whatever the row does not know came after the head as well. Who calls
//! [`Listed::combined`] has made sure of it.

use std::sync::Arc;

use serde::Serialize;
use tidemark_event::{
    ConversationId, Kind, LogTime, NextOffset, Offset, Partition, Position, Seq, UserId,
};
use tidemark_fold::{
    Head,
    sessions::{Block, BlockNo, MAX_MENTIONS_NAMED, Mode, Session, SessionsExtra, Tally},
};
use utoipa::ToSchema;

use super::message::PreviewJson;
use crate::{shared::Since, time::Time};

/// The head of a conversation in the sessions view.
pub(crate) type SessionsHead = Head<SessionsExtra>;

/// A session, complete but for the count of what is unread in a large conversation.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) partition: Partition,
    pub(crate) conversation: ConversationId,
    /// The row, completed.
    pub(crate) row: Session,
    /// The newest event in what is shown.
    as_of: Offset,
    /// Where what is unread is to be counted from, unless the row says it.
    uncounted: Option<Uncounted>,
}

/// What the count of a large conversation begins with.
#[derive(Debug, Clone)]
struct Uncounted {
    head: Arc<SessionsHead>,
    /// Blocks are to be read since then: after the head was.
    read: Since,
}

/// A place in a list of sessions. Lists ascend by it: pinned ones first, then the newest activity, then by id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
pub(crate) struct ListKey {
    is_not_pinned: bool,
    last_active: std::cmp::Reverse<i64>,
    conversation: String,
}

impl Listed {
    /// A session whose row says all.
    pub(crate) fn fanned_out(
        partition: Partition,
        conversation: ConversationId,
        row: Session,
    ) -> Self {
        Self {
            partition,
            conversation,
            as_of: row.applied,
            row,
            uncounted: None,
        }
    }

    /// A session of a large conversation. The row was read after `read`, when the head had been read, and is not
    /// ahead of it.
    pub(crate) fn combined(
        partition: Partition,
        conversation: ConversationId,
        row: &Session,
        (head, read): (Arc<SessionsHead>, Since),
    ) -> Self {
        Self {
            partition,
            conversation,
            row: row.completed(&head),
            as_of: head.applied.max(row.applied),
            uncounted: Some(Uncounted { head, read }),
        }
    }

    /// Whether it is on the user's list.
    pub(crate) fn is_listed(&self) -> bool {
        self.row.is_listed(self.row.last_seq)
    }

    pub(crate) fn key(&self) -> ListKey {
        ListKey {
            is_not_pinned: !self.row.pinned,
            last_active: std::cmp::Reverse(self.row.last_active.millis()),
            conversation: self.conversation.as_str().to_owned(),
        }
    }

    pub(crate) fn has_mentions(&self) -> bool {
        // Rows of both modes keep the mentions by name.
        self.row.tally.mention_count > 0
    }

    /// The blocks, beside the head's own, that are to be counted, and since when they may have been read. None where
    /// the session is counted.
    pub(crate) fn blocks(&self, block_seqs: u64) -> Option<(Vec<BlockNo>, Since)> {
        let Uncounted { head, read } = self.uncounted.as_ref()?;
        let newest = head.extra.block.no;
        let covering = BlockNo::covering(self.row.first_counting(), self.row.last_seq, block_seqs);
        Some((covering.take_while(|no| *no < newest).collect(), *read))
    }

    /// What `blocks` say is unread for `user`, nothing where the session is counted.
    pub(crate) fn tally<'b>(
        &self,
        user: &UserId,
        blocks: impl IntoIterator<Item = &'b Block>,
    ) -> Tally {
        if self.uncounted.is_none() {
            return Tally::default();
        }
        let counting = (self.row.first_counting(), self.row.last_seq);
        self.tally_as_of(user, blocks, counting)
    }

    /// Takes what all older blocks say together, and adds what the head's own says.
    pub(crate) fn set_counted(&mut self, user: &UserId, mut older: Tally) {
        let Some(Uncounted { head, .. }) = &self.uncounted else {
            return;
        };
        add(&mut older, self.tally(user, [&head.extra.block]));
        self.row.tally = older;
        self.uncounted = None;
    }

    /// What is unread by name, newest first, as far as it is named.
    pub(crate) fn named_mentions(&self) -> impl Iterator<Item = Seq> + '_ {
        self.row.tally.mentions.iter().rev().copied()
    }

    /// The session as clients read it, counted.
    pub(crate) fn to_json(&self) -> SessionJson {
        let row = &self.row;
        let newest = row
            .newest
            .as_ref()
            .filter(|newest| row.shows(newest.message.seq));
        SessionJson {
            conversation_id: self.conversation.clone(),
            kind: row.kind,
            title: row.title.clone(),
            last_seq: row.last_seq,
            last_message: newest.map(|newest| PreviewJson::of(&newest.message)),
            last_active_at: row.last_active.into(),
            unread: row.tally.unread,
            unread_mentions: row.tally.mentions.clone(),
            unread_mentions_count: row.tally.mention_count,
            mentioned_all: row.tally.mentioned_all.is_some(),
            mentioned_all_seq: row.tally.mentioned_all,
            read_seq: row.read_seq,
            cleared_to: row.cleared_to,
            peer_read_seq: match row.kind {
                Kind::Direct => Some(row.peer_read_seq),
                Kind::Group => None,
            },
            marked_unread: row.marked_unread,
            pinned: row.pinned,
            muted: row.muted,
            draft: row.draft.clone(),
            members: row.members,
            left: row.left,
            as_of: self.as_of().to_string(),
        }
    }

    /// What is unread, the session being counted or small.
    pub(crate) fn unread(&self) -> u64 {
        self.row.tally.unread
    }

    /// Whether what is unread has to be counted before it is known.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.uncounted.is_some()
    }

    /// The newest event in what is shown.
    pub(crate) fn as_of(&self) -> Position {
        Position {
            partition: self.partition,
            offset: self.as_of,
        }
    }

    /// What `blocks` say of some seqs for `user`, as of what is shown.
    pub(crate) fn tally_as_of<'b>(
        &self,
        user: &UserId,
        blocks: impl IntoIterator<Item = &'b Block>,
        (from, to): (Seq, Seq),
    ) -> Tally {
        let known = NextOffset::after(self.as_of);
        Tally::of(blocks, user, from, to, &self.row.hidden, known)
    }

    pub(crate) fn last_active(&self) -> LogTime {
        self.row.last_active
    }
}

/// Adds what is unread in a newer stretch of a conversation to what is in an older one.
pub(crate) fn add(older: &mut Tally, newer: Tally) {
    older.unread += newer.unread;
    older.mention_count += newer.mention_count;
    older.mentions.extend(newer.mentions);
    let too_many = older.mentions.len().saturating_sub(MAX_MENTIONS_NAMED);
    older.mentions.drain(..too_many);
    older.mentioned_all = newer.mentioned_all.or(older.mentioned_all);
}

/// Whether a row says all only together with the conversation's head.
pub(crate) fn needs_head(row: &Session) -> bool {
    match row.mode {
        Mode::FannedOut => false,
        Mode::Combined => true,
    }
}

/// A conversation as one user sees it on their list.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionJson {
    /// The conversation.
    #[schema(value_type = String)]
    conversation_id: ConversationId,
    /// `direct` or `group`.
    #[schema(value_type = String, example = "group")]
    kind: Kind,
    /// The title; empty for none.
    title: String,
    /// The newest message; as it was on leaving for who left.
    #[schema(value_type = u64)]
    last_seq: Seq,
    /// The newest message; null where there is none, or it is hidden or cleared for the caller.
    last_message: Option<PreviewJson>,
    /// When the newest message came; before any, when the conversation began or the caller joined.
    last_active_at: Time,
    /// How many messages are unread.
    unread: u64,
    /// The unread messages that mention the caller by name: the newest 100, ascending.
    #[schema(value_type = Vec<u64>)]
    unread_mentions: Vec<Seq>,
    /// How many unread messages mention the caller by name.
    unread_mentions_count: u64,
    /// An unread message mentions everybody.
    mentioned_all: bool,
    /// The newest such message.
    #[schema(value_type = Option<u64>)]
    mentioned_all_seq: Option<Seq>,
    /// The caller has read up to here.
    #[schema(value_type = u64)]
    read_seq: Seq,
    /// The caller has cleared up to here; 0 for never.
    #[schema(value_type = u64)]
    cleared_to: Seq,
    /// Direct: how far the other one has ever read. Null in groups.
    #[schema(value_type = Option<u64>)]
    peer_read_seq: Option<Seq>,
    /// Marked unread by the caller, and not read to the end since.
    marked_unread: bool,
    /// Listed first.
    pinned: bool,
    /// Left out of the total.
    muted: bool,
    /// Text begun and not sent; empty for none.
    draft: String,
    /// How many members there are.
    members: u32,
    /// The caller is no member any more.
    left: bool,
    /// The position of the newest event in what is shown here.
    #[schema(example = "3-1204")]
    as_of: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidemark_fold::sessions::Mention;

    use super::*;
    use crate::sample;

    const BLOCK_SEQS: u64 = 4;

    fn small(row: Session) -> Listed {
        Listed::fanned_out(Partition::new(3), sample::conversation("g1"), row)
    }

    fn large(row: &Session, head: SessionsHead) -> Listed {
        let g1 = sample::conversation("g1");
        Listed::combined(Partition::new(3), g1, row, (Arc::new(head), Since::now()))
    }

    /// anna's row in a large conversation of which she has read up to `read`.
    fn combined_row(read: u64) -> Session {
        Session {
            mode: Mode::Combined,
            newest: None,
            last_seq: Seq::ZERO,
            read_seq: sample::seq(read),
            ..sample::session(0)
        }
    }

    fn count(listed: &mut Listed, older: &[Block]) {
        let anna = sample::user("anna");
        let tally = listed.tally(&anna, older);
        listed.set_counted(&anna, tally);
    }

    /// Ten messages by bo, in blocks 1–4, 5–8 and, in the head, 9–10.
    fn ten() -> (SessionsHead, Vec<Block>) {
        let extra = sample::sessions_extra(sample::block(2, 9, 2), Some(sample::newest(10, "bo")));
        let blocks = vec![sample::block(0, 1, 4), sample::block(1, 5, 4)];
        (sample::head(10, 10, extra), blocks)
    }

    #[test]
    fn a_session_shows_every_field() {
        let row = Session {
            read_seq: sample::seq(5),
            tally: Tally {
                unread: 2,
                mention_count: 1,
                mentions: vec![sample::seq(6)],
                mentioned_all: Some(sample::seq(7)),
            },
            draft: "well".to_owned(),
            ..sample::session(7)
        };
        let expected = json!({
            "conversation_id": "g1",
            "kind": "group",
            "title": "group",
            "last_seq": 7,
            "last_message": {
                "seq": 7, "sender": "bo", "preview": "message 7", "content_type": "text", "recalled": false,
                "at": "1970-01-01T00:00:07.000Z",
            },
            "last_active_at": "1970-01-01T00:00:07.000Z",
            "unread": 2,
            "unread_mentions": [6],
            "unread_mentions_count": 1,
            "mentioned_all": true,
            "mentioned_all_seq": 7,
            "read_seq": 5,
            "cleared_to": 0,
            "peer_read_seq": null,
            "marked_unread": false,
            "pinned": false,
            "muted": false,
            "draft": "well",
            "members": 3,
            "left": false,
            "as_of": "3-7",
        });
        assert_eq!(
            serde_json::to_value(small(row).to_json()).unwrap(),
            expected
        );
    }

    #[test]
    fn a_newest_message_that_is_hidden_or_cleared_is_not_shown() {
        let mut row = sample::session(7);
        row.hidden.insert(sample::seq(7));
        assert_eq!(small(row).to_json().last_message, None);
        let row = Session {
            cleared_to: sample::seq(7),
            ..sample::session(7)
        };
        assert_eq!(small(row).to_json().last_message, None);
    }

    #[test]
    fn a_direct_chat_shows_how_far_the_other_has_read() {
        let row = Session {
            kind: Kind::Direct,
            peer_read_seq: sample::seq(4),
            ..sample::session(7)
        };
        assert_eq!(small(row).to_json().peer_read_seq, Some(sample::seq(4)));
    }

    #[test]
    fn a_large_conversation_looks_like_a_small_one() {
        let (head, blocks) = ten();
        let mut listed = large(&combined_row(6), head);
        assert_eq!(listed.blocks(BLOCK_SEQS).unwrap().0, [BlockNo::new(1)]);
        count(&mut listed, &blocks[1..]);
        let row = Session {
            read_seq: sample::seq(6),
            tally: Tally {
                unread: 4,
                ..Tally::default()
            },
            ..sample::session(10)
        };
        assert_eq!(listed.to_json(), small(row).to_json());
    }

    #[test]
    fn what_the_blocks_know_beyond_the_head_counts_for_nothing() {
        let (head, mut blocks) = ten();
        // A recall that a crash has left ahead of the head, and a mention by an edit that came after it.
        blocks[1].entries[2].recalled = Some(Offset::new(11));
        blocks[1].users.push(sample::user("anna"));
        blocks[1].entries[3].mentions.push(Mention {
            user: 1,
            from: Offset::new(12),
            until: None,
        });
        let mut listed = large(&combined_row(6), head);
        count(&mut listed, &blocks[1..]);
        assert_eq!(
            listed.row.tally,
            Tally {
                unread: 4,
                ..Tally::default()
            }
        );
    }

    #[test]
    fn a_read_conversation_needs_no_blocks() {
        let (head, _) = ten();
        for (read, needed) in [(10, 0), (8, 0), (7, 1), (0, 2)] {
            let listed = large(&combined_row(read), head.clone());
            assert_eq!(listed.blocks(BLOCK_SEQS).unwrap().0.len(), needed, "{read}");
        }
    }

    #[test]
    fn stretches_add_up_and_name_the_newest_hundred() {
        let stretch = |from: u64, to: u64| Tally {
            unread: to - from + 1,
            mention_count: to - from + 1,
            mentions: (from..=to).map(Seq::new).collect(),
            mentioned_all: Some(sample::seq(from)),
        };
        let mut tally = stretch(1, 60);
        add(&mut tally, stretch(61, 130));
        add(&mut tally, Tally::default());
        let expected = Tally {
            unread: 130,
            mention_count: 130,
            mentions: (31..=130).map(Seq::new).collect(),
            mentioned_all: Some(sample::seq(61)),
        };
        assert_eq!(tally, expected);
    }

    #[test]
    fn lists_are_pinned_first_then_newest_then_by_id() {
        let listed = |name: &str, last: u64, pinned: bool| {
            let row = Session {
                pinned,
                ..sample::session(last)
            };
            Listed::fanned_out(Partition::new(0), sample::conversation(name), row)
        };
        let mut all = [
            listed("b", 5, false),
            listed("a", 5, false),
            listed("old", 1, true),
            listed("new", 9, false),
        ];
        all.sort_by_key(Listed::key);
        let names: Vec<&str> = all
            .iter()
            .map(|listed| listed.conversation.as_str())
            .collect();
        assert_eq!(names, ["old", "new", "a", "b"]);
    }
}
