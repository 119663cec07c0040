//! The facts a log holds: one envelope, one payload a kind of fact.
//!
//! Field and variant names, and the order of both, are those of `schemas/avro/`; a change here is a new schema version
//! there.

use serde::{Deserialize, Serialize};

use crate::{ConversationId, DeviceId, EventId, Seq, UserId};

/// The most members that one event adds or removes. Whoever has more to add sends several events.
pub const MAX_MEMBERS_PER_EVENT: usize = 1_000;

/// One fact in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The producer's idempotency key.
    pub id: EventId,
    /// The conversation it is about, and its record's key.
    pub conversation: ConversationId,
    /// Who did it.
    pub actor: UserId,
    /// A service speaks, as the actor or for itself: it needs no membership where a payload allows that.
    pub by_service: bool,
    /// The actor's own clock, in milliseconds since 1970 UTC. Only ever shown.
    pub occurred_at: Option<i64>,
    /// Names the key that a body is encrypted with. Kept for erasing a person by dropping a key; unused so far.
    pub body_key: Option<String>,
    /// What happened.
    pub payload: Payload,
}

/// What happened in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload {
    /// A conversation began.
    ConversationCreated(ConversationCreated),
    /// Its title or its history setting changed.
    ConversationChanged(ConversationChanged),
    /// Users joined a group.
    MembersAdded(MembersAdded),
    /// Users left a group or were removed from it.
    MembersRemoved(MembersRemoved),
    /// A message was sent: the only event that takes a seq.
    MessageSent(MessageSent),
    /// A message's text was replaced.
    MessageEdited(MessageEdited),
    /// A message was taken back for everyone.
    MessageRecalled(MessageRecalled),
    /// A message was hidden by the actor, for the actor.
    MessageHidden(MessageHidden),
    /// The actor read up to a seq.
    ReadAdvanced(ReadAdvanced),
    /// The actor marked the conversation unread from a seq on.
    MarkedUnread(MarkedUnread),
    /// The actor changed settings of their own.
    SessionChanged(SessionChanged),
    /// The actor cleared their own history up to now.
    HistoryCleared(HistoryCleared),
    /// The actor took the conversation off their list until its next message.
    SessionRemoved(SessionRemoved),
    /// One of the actor's devices has stored messages up to a seq.
    InboxAcked(InboxAcked),
}

/// A direct chat has exactly two members for ever; a group's come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Two people.
    Direct,
    /// Any number of people.
    Group,
}

/// What a member may see of the time before joining.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// Nothing: only the member's own intervals.
    FromJoin,
    /// Everything before the first join. The gap between two memberships stays hidden.
    All,
}

/// See [`Payload::ConversationCreated`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationCreated {
    /// Direct or group.
    pub kind: Kind,
    /// The first members, the actor among them unless a service creates it. At most [`MAX_MEMBERS_PER_EVENT`].
    pub members: Vec<UserId>,
    /// The title; empty for none.
    pub title: String,
    /// What later members may see.
    pub history: History,
}

/// See [`Payload::ConversationChanged`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationChanged {
    /// The new title, where it changes.
    pub title: Option<String>,
    /// The new history setting for those who join from here on, where it changes.
    pub history: Option<History>,
}

/// See [`Payload::MembersAdded`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembersAdded {
    /// Who joins. At most [`MAX_MEMBERS_PER_EVENT`].
    pub members: Vec<UserId>,
}

/// See [`Payload::MembersRemoved`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MembersRemoved {
    /// Who leaves. At most [`MAX_MEMBERS_PER_EVENT`].
    pub members: Vec<UserId>,
}

/// See [`Payload::MessageSent`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSent {
    /// The text, or whatever the content type says.
    pub body: String,
    /// What the body is: `text`, `system` or a product's own word.
    pub content_type: String,
    /// Who is addressed by name.
    pub mentions: Vec<UserId>,
    /// Everybody but the sender is addressed.
    pub mention_all: bool,
    /// Never counted as unread.
    pub silent: bool,
    /// The message that this one answers.
    #[serde(with = "crate::long::optional")]
    pub reply_to: Option<Seq>,
}

/// See [`Payload::MessageEdited`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageEdited {
    /// The message edited.
    #[serde(with = "crate::long")]
    pub seq: Seq,
    /// Its new text.
    pub body: String,
    /// Who is addressed by name from now on; absent: as before.
    pub mentions: Option<Vec<UserId>>,
}

/// See [`Payload::MessageRecalled`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRecalled {
    /// The message taken back.
    #[serde(with = "crate::long")]
    pub seq: Seq,
}

/// See [`Payload::MessageHidden`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageHidden {
    /// The message hidden.
    #[serde(with = "crate::long")]
    pub seq: Seq,
}

/// See [`Payload::ReadAdvanced`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadAdvanced {
    /// The newest message read; beyond the last it means the last.
    #[serde(with = "crate::long")]
    pub seq: Seq,
}

/// See [`Payload::MarkedUnread`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedUnread {
    /// The first message unread again; above the read position it changes nothing.
    #[serde(with = "crate::long")]
    pub from_seq: Seq,
}

/// See [`Payload::SessionChanged`]. What is absent stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionChanged {
    /// Listed first.
    pub pinned: Option<bool>,
    /// Left out of the total.
    pub muted: Option<bool>,
    /// Text begun and not sent; empty for none.
    pub draft: Option<String>,
}

/// See [`Payload::HistoryCleared`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryCleared {}

/// See [`Payload::SessionRemoved`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRemoved {}

/// See [`Payload::InboxAcked`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxAcked {
    /// The newest message stored; beyond the last it means the last.
    #[serde(with = "crate::long")]
    pub seq: Seq,
    /// The device that stored it.
    pub device: DeviceId,
}

impl Payload {
    /// The event's type, as it stands in JSON lines and in the Avro schema.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::ConversationCreated(_) => "ConversationCreated",
            Self::ConversationChanged(_) => "ConversationChanged",
            Self::MembersAdded(_) => "MembersAdded",
            Self::MembersRemoved(_) => "MembersRemoved",
            Self::MessageSent(_) => "MessageSent",
            Self::MessageEdited(_) => "MessageEdited",
            Self::MessageRecalled(_) => "MessageRecalled",
            Self::MessageHidden(_) => "MessageHidden",
            Self::ReadAdvanced(_) => "ReadAdvanced",
            Self::MarkedUnread(_) => "MarkedUnread",
            Self::SessionChanged(_) => "SessionChanged",
            Self::HistoryCleared(_) => "HistoryCleared",
            Self::SessionRemoved(_) => "SessionRemoved",
            Self::InboxAcked(_) => "InboxAcked",
        }
    }
}
