//! Rows and pieces for this crate's tests: all that a generator can think of.

use proptest::{
    collection::{btree_map, btree_set, vec},
    option,
    prelude::*,
};
use tidemark_event::{
    ConversationId, DeviceId, EventId, Fingerprint, History, Kind, LogTime, MAX_SEQ, Offset, Seq,
    UserId,
};
use tidemark_fold::{
    AcceptedId, DedupeIndex, Head, Interval, Leaving, Member, Message, PieceNo, PieceSpan, Stored,
    inbox::{InboxExtra, Period, Place},
    sessions::{Block, BlockNo, Entry, Mention, Mode, Newest, Session, SessionsExtra, Tally},
};
use uuid::Uuid;

fn text_id() -> impl Strategy<Value = String> {
    "\\PC{1,20}"
}

pub(crate) fn user() -> impl Strategy<Value = UserId> {
    text_id().prop_map(|id| UserId::new(id).unwrap())
}

pub(crate) fn conversation() -> impl Strategy<Value = ConversationId> {
    text_id().prop_map(|id| ConversationId::new(id).unwrap())
}

fn seq() -> impl Strategy<Value = Seq> {
    prop_oneof![0..100_u64, 0..=MAX_SEQ.get()].prop_map(Seq::new)
}

fn message_seq() -> impl Strategy<Value = Seq> {
    prop_oneof![1..100_u64, 1..=MAX_SEQ.get()].prop_map(Seq::new)
}

fn offset() -> impl Strategy<Value = Offset> {
    (0..=i64::MAX).prop_map(Offset::new)
}

fn time() -> impl Strategy<Value = LogTime> {
    (0..=i64::MAX).prop_map(LogTime::from_millis)
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Direct), Just(Kind::Group)]
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::FannedOut), Just(Mode::Combined)]
}

fn message() -> impl Strategy<Value = Message> {
    let texts = (any::<String>(), any::<String>(), vec(user(), 0..4));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let times = (
        option::of((1..=i64::MAX).prop_map(LogTime::from_millis)),
        option::of(any::<i64>()),
        time(),
    );
    let names = (
        message_seq(),
        any::<u128>(),
        user(),
        option::of(message_seq()),
    );
    (names, texts, flags, times).prop_map(
        |(
            (seq, id, sender, reply_to),
            (body, content_type, mentions),
            (mention_all, silent, recalled),
            (edited_at, occurred_at, logged_at),
        )| Message {
            seq,
            event_id: EventId::new(Uuid::from_u128(id)),
            sender,
            body: if recalled { String::new() } else { body },
            content_type,
            mentions,
            mention_all,
            silent,
            reply_to,
            edited_at,
            recalled,
            occurred_at,
            logged_at,
        },
    )
}

pub(crate) fn stored() -> impl Strategy<Value = Stored> {
    (offset(), message()).prop_map(|(applied, message)| Stored { applied, message })
}

pub(crate) fn member() -> impl Strategy<Value = Member> {
    let leaving = (seq(), offset()).prop_map(|(until, at)| Leaving { until, at });
    let interval =
        (seq(), offset(), option::of(leaving)).prop_map(|(since, joined, left)| Interval {
            since,
            joined,
            left,
        });
    let hidden = btree_set(message_seq(), 0..4);
    (
        offset(),
        vec(interval, 0..4),
        option::of(offset()),
        seq(),
        hidden,
    )
        .prop_map(|(applied, intervals, opened, cleared_to, hidden)| Member {
            applied,
            intervals,
            opened,
            cleared_to,
            hidden,
        })
}

pub(crate) fn accepted_id() -> impl Strategy<Value = AcceptedId> {
    (
        any::<u128>(),
        offset(),
        0..=MAX_SEQ.get(),
        time(),
        option::of(message_seq()),
    )
        .prop_map(|(id, offset, ordinal, log_time, seq)| AcceptedId {
            id: EventId::new(Uuid::from_u128(id)),
            offset,
            ordinal,
            log_time,
            seq,
        })
}

fn newest() -> impl Strategy<Value = Newest> {
    (message(), any::<bool>()).prop_map(|(message, is_whole)| Newest {
        message: message.into(),
        is_whole,
    })
}

pub(crate) fn session() -> impl Strategy<Value = Session> {
    let tally = (
        0..=MAX_SEQ.get(),
        0..1_000_u64,
        vec(message_seq(), 0..5),
        option::of(message_seq()),
    )
        .prop_map(|(unread, more, mentions, mentioned_all)| Tally {
            unread,
            mention_count: mentions.len() as u64 + more,
            mentions,
            mentioned_all,
        });
    let seqs = (seq(), seq(), seq(), seq(), seq(), option::of(seq()));
    let flags = any::<[bool; 4]>();
    let texts = (any::<String>(), any::<String>());
    let kept = (offset(), mode(), kind(), time(), any::<u32>());
    let parts = (option::of(newest()), btree_set(message_seq(), 0..4), tally);
    (kept, seqs, flags, texts, parts).prop_map(
        |(
            (applied, mode, kind, last_active, members),
            (last_seq, since, read_seq, cleared_to, peer_read_seq, removed_at),
            [marked_unread, pinned, muted, left],
            (title, draft),
            (newest, hidden, tally),
        )| Session {
            applied,
            mode,
            kind,
            title,
            last_seq,
            newest,
            last_active,
            since,
            read_seq,
            tally,
            cleared_to,
            hidden,
            peer_read_seq,
            marked_unread,
            pinned,
            muted,
            draft,
            members,
            left,
            removed_at,
        },
    )
}

pub(crate) fn block() -> impl Strategy<Value = Block> {
    let mention = (any::<u32>(), offset(), option::of(offset()))
        .prop_map(|(user, from, until)| Mention { user, from, until });
    let entry = (
        (offset(), any::<u32>(), any::<bool>(), any::<bool>()),
        vec(mention, 0..3),
        option::of(offset()),
    )
        .prop_map(
            |((sent, sender, counts, mention_all), mentions, recalled)| Entry {
                sent,
                sender,
                counts,
                mention_all,
                mentions,
                recalled,
            },
        );
    (
        offset(),
        0..=MAX_SEQ.get(),
        message_seq(),
        vec(user(), 0..4),
        vec(entry, 0..5),
    )
        .prop_map(|(applied, no, first, users, entries)| Block {
            applied,
            no: BlockNo::new(no),
            first,
            users,
            entries,
        })
}

pub(crate) fn sessions_extra() -> impl Strategy<Value = SessionsExtra> {
    (mode(), block(), option::of(newest()), time()).prop_map(
        |(mode, block, newest, last_active)| SessionsExtra {
            mode,
            block,
            newest,
            last_active,
        },
    )
}

pub(crate) fn inbox_extra() -> impl Strategy<Value = InboxExtra> {
    let period = any::<i64>().prop_map(Period::new);
    (vec((period, seq()), 0..4), option::of(seq()))
        .prop_map(|(periods, copied_to)| InboxExtra { periods, copied_to })
}

pub(crate) fn place() -> impl Strategy<Value = Place> {
    let device = text_id().prop_map(|id| DeviceId::new(id).unwrap());
    let devices = btree_map(device, seq(), 0..4);
    (offset(), member(), devices, option::of(seq())).prop_map(
        |(applied, member, devices, copied_to)| Place {
            applied,
            member,
            devices,
            copied_to,
        },
    )
}

pub(crate) fn head<E: std::fmt::Debug>(
    extra: impl Strategy<Value = E>,
) -> impl Strategy<Value = Head<E>> {
    let span = (any::<u64>(), any::<u64>(), time(), time()).prop_map(
        |(no, first_ordinal, first_time, last_time)| PieceSpan {
            no: PieceNo::new(no),
            first_ordinal,
            first_time,
            last_time,
        },
    );
    let dedupe =
        (any::<u64>(), vec(span, 0..3)).prop_map(|(accepted, live)| DedupeIndex { accepted, live });
    let numbers = (any::<i64>(), any::<u64>(), any::<u32>(), seq());
    let words = (
        kind(),
        prop_oneof![Just(History::All), Just(History::FromJoin)],
        any::<String>(),
    );
    (offset(), time(), numbers, words, dedupe, extra).prop_map(
        |(
            applied,
            log_time,
            (fingerprint, creation, members, last_seq),
            (kind, history, title),
            dedupe,
            extra,
        )| Head {
            applied,
            fingerprint: Fingerprint::from_i64(fingerprint),
            log_time,
            last_seq,
            kind,
            title,
            history,
            creation,
            members,
            dedupe,
            extra,
        },
    )
}
