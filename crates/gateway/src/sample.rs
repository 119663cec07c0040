//! Rows for this crate's tests, by hand.

use std::{collections::BTreeSet, sync::Arc};

use tidemark_event::{
    ConversationId, EventId, Fingerprint, History, Kind, LogTime, Offset, Seq, UserId,
};
use tidemark_fold::{
    DedupeIndex, Head, Member, Message,
    sessions::{Block, BlockNo, Entry, Mode, Newest, Session, SessionsExtra, Tally},
};
use uuid::Uuid;

pub(crate) fn conversation(name: &str) -> ConversationId {
    ConversationId::new(name).unwrap()
}

pub(crate) fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

pub(crate) fn seq(number: u64) -> Seq {
    Seq::new(number)
}

pub(crate) fn event_id(number: u64) -> EventId {
    EventId::new(Uuid::from_u128(number.into()))
}

/// Message `number`, logged that many seconds after 1970 began.
pub(crate) fn message(number: u64, sender: &str) -> Message {
    Message {
        seq: seq(number),
        event_id: event_id(number),
        sender: user(sender),
        body: format!("message {number}"),
        content_type: "text".to_owned(),
        mentions: Vec::new(),
        mention_all: false,
        silent: false,
        reply_to: None,
        edited_at: None,
        recalled: false,
        occurred_at: None,
        logged_at: LogTime::from_millis(1_000 * i64::try_from(number).unwrap()),
    }
}

pub(crate) fn newest(number: u64, sender: &str) -> Newest {
    Newest {
        message: Arc::new(message(number, sender)),
        is_whole: true,
    }
}

/// A row of a group that everybody joined at its creation, of `last` messages, the last by bo; read up to the last.
/// Its newest event is the one at offset `last`.
pub(crate) fn session(last: u64) -> Session {
    Session {
        applied: Offset::new(i64::try_from(last).unwrap()),
        mode: Mode::FannedOut,
        kind: Kind::Group,
        title: "group".to_owned(),
        last_seq: seq(last),
        newest: (last > 0).then(|| newest(last, "bo")),
        last_active: LogTime::from_millis(1_000 * i64::try_from(last).unwrap()),
        since: Seq::FIRST,
        read_seq: seq(last),
        tally: Tally::default(),
        cleared_to: Seq::ZERO,
        hidden: BTreeSet::new(),
        peer_read_seq: Seq::ZERO,
        marked_unread: false,
        pinned: false,
        muted: false,
        draft: String::new(),
        members: 3,
        left: false,
        removed_at: None,
    }
}

/// A head of a group with `extra`, whose newest event is the one at offset `applied`.
pub(crate) fn head<Extra>(applied: i64, last: u64, extra: Extra) -> Head<Extra> {
    Head {
        applied: Offset::new(applied),
        fingerprint: Fingerprint::from_i64(0),
        log_time: LogTime::START,
        last_seq: seq(last),
        kind: Kind::Group,
        title: "group".to_owned(),
        history: History::FromJoin,
        creation: 0,
        members: 3,
        dedupe: DedupeIndex::default(),
        extra,
    }
}

/// A block of messages by bo from `first` on, each sent by the event at the offset that is its seq.
pub(crate) fn block(no: u64, first: u64, messages: u64) -> Block {
    let entry = |number: u64| Entry {
        sent: Offset::new(i64::try_from(number).unwrap()),
        sender: 0,
        counts: true,
        mention_all: false,
        mentions: Vec::new(),
        recalled: None,
    };
    Block {
        applied: Offset::new(i64::try_from(first + messages - 1).unwrap()),
        no: BlockNo::new(no),
        first: seq(first),
        users: vec![user("bo")],
        entries: (first..first + messages).map(entry).collect(),
    }
}

pub(crate) fn sessions_extra(block: Block, newest: Option<Newest>) -> SessionsExtra {
    let last_active = newest
        .as_ref()
        .map_or(LogTime::START, |newest| newest.message.logged_at);
    SessionsExtra {
        mode: Mode::Combined,
        block,
        newest,
        last_active,
    }
}

/// Somebody who joined before the first message and is a member.
pub(crate) fn member() -> Member {
    Member {
        applied: Offset::new(0),
        intervals: vec![tidemark_fold::Interval {
            since: Seq::FIRST,
            joined: Offset::new(0),
            left: None,
        }],
        opened: None,
        cleared_to: Seq::ZERO,
        hidden: BTreeSet::new(),
    }
}

/// Somebody who left after `until`.
pub(crate) fn former_member(until: u64) -> Member {
    let mut member = member();
    member.intervals[0].left = Some(tidemark_fold::Leaving {
        until: seq(until),
        at: Offset::new(100),
    });
    member
}
