//! Events for this crate's tests: one by hand, and all that a generator can think of.

use proptest::{collection::vec, option, prelude::*};
use uuid::Uuid;

use crate::{
    ConversationChanged, ConversationCreated, ConversationId, DeviceId, Event, EventId, History,
    HistoryCleared, InboxAcked, Kind, MAX_SEQ, MarkedUnread, MembersAdded, MembersRemoved,
    MessageEdited, MessageHidden, MessageRecalled, MessageSent, Payload, ReadAdvanced, Seq,
    SessionChanged, SessionRemoved, UserId,
};

/// bo in g1, by hand.
pub(crate) fn event(payload: Payload) -> Event {
    Event {
        id: EventId::new(Uuid::from_u128(1)),
        conversation: ConversationId::new("g1").unwrap(),
        actor: UserId::new("bo").unwrap(),
        by_service: false,
        occurred_at: None,
        body_key: None,
        payload,
    }
}

/// Any event within the limits.
pub(crate) fn any_event() -> impl Strategy<Value = Event> {
    let envelope = (
        any::<u128>(),
        text_id(),
        user(),
        any::<bool>(),
        option::of(prop_oneof![0..4_102_444_800_000_i64, any::<i64>()]),
        option::of(text_id()),
    );
    (envelope, any_payload()).prop_map(
        |((id, conversation, actor, by_service, occurred_at, body_key), payload)| Event {
            id: EventId::new(Uuid::from_u128(id)),
            conversation: ConversationId::new(conversation).unwrap(),
            actor,
            by_service,
            occurred_at,
            body_key,
            payload,
        },
    )
}

fn any_payload() -> impl Strategy<Value = Payload> {
    let created = (any_kind(), users(), any::<String>(), any_history()).prop_map(
        |(kind, members, title, history)| ConversationCreated {
            kind,
            members,
            title,
            history,
        },
    );
    let changed = (option::of(any::<String>()), option::of(any_history()))
        .prop_map(|(title, history)| ConversationChanged { title, history });
    let edited = (seq(), any::<String>(), option::of(users())).prop_map(|(seq, body, mentions)| {
        MessageEdited {
            seq,
            body,
            mentions,
        }
    });
    let session = (
        option::of(any::<bool>()),
        option::of(any::<bool>()),
        option::of(any::<String>()),
    )
        .prop_map(|(pinned, muted, draft)| SessionChanged {
            pinned,
            muted,
            draft,
        });
    let acked = (seq(), text_id()).prop_map(|(seq, device)| InboxAcked {
        seq,
        device: DeviceId::new(device).unwrap(),
    });
    prop_oneof![
        created.prop_map(Payload::ConversationCreated),
        changed.prop_map(Payload::ConversationChanged),
        users().prop_map(|members| Payload::MembersAdded(MembersAdded { members })),
        users().prop_map(|members| Payload::MembersRemoved(MembersRemoved { members })),
        any_message().prop_map(Payload::MessageSent),
        edited.prop_map(Payload::MessageEdited),
        seq().prop_map(|seq| Payload::MessageRecalled(MessageRecalled { seq })),
        seq().prop_map(|seq| Payload::MessageHidden(MessageHidden { seq })),
        seq().prop_map(|seq| Payload::ReadAdvanced(ReadAdvanced { seq })),
        seq().prop_map(|from_seq| Payload::MarkedUnread(MarkedUnread { from_seq })),
        session.prop_map(Payload::SessionChanged),
        Just(Payload::HistoryCleared(HistoryCleared {})),
        Just(Payload::SessionRemoved(SessionRemoved {})),
        acked.prop_map(Payload::InboxAcked),
    ]
}

fn any_message() -> impl Strategy<Value = MessageSent> {
    let content_type = prop_oneof![
        Just("text".to_owned()),
        Just("system".to_owned()),
        "\\PC{1,20}"
    ];
    (
        any::<String>(),
        content_type,
        users(),
        any::<bool>(),
        any::<bool>(),
        option::of(seq()),
    )
        .prop_map(
            |(body, content_type, mentions, mention_all, silent, reply_to)| MessageSent {
                body,
                content_type,
                mentions,
                mention_all,
                silent,
                reply_to,
            },
        )
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Direct), Just(Kind::Group)]
}

fn any_history() -> impl Strategy<Value = History> {
    prop_oneof![Just(History::FromJoin), Just(History::All)]
}

fn seq() -> impl Strategy<Value = Seq> {
    prop_oneof![0..100_u64, 0..=MAX_SEQ.get()].prop_map(Seq::new)
}

/// Up to 128 bytes without control characters.
fn text_id() -> impl Strategy<Value = String> {
    "\\PC{1,32}"
}

fn user() -> impl Strategy<Value = UserId> {
    text_id().prop_map(|id| UserId::new(id).unwrap())
}

fn users() -> impl Strategy<Value = Vec<UserId>> {
    vec(user(), 0..6)
}
