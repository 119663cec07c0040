//! Judges one record: duplicate, refused with a reason, or accepted with an effect.
//!
//! Every view runs this same code over its own copy of the conversation's state, so that all agree on which record was
//! accepted and what seq it took. Once a record is in the log its verdict never changes: a changed rule holds from a
//! position written into the log's settings.

use std::collections::BTreeSet;

use tidemark_event::{
    ConversationCreated, DeviceId, Event, History, Kind, LogTime, MAX_MEMBERS_PER_EVENT,
    MessageEdited, MessageSent, NextOffset, Offset, Payload, Seq, SessionChanged, UserId,
};

use crate::{Head, Need, Record, Stop, View, parts::Members};

/// The content type that only services may send, and that never counts as unread.
pub(crate) const SYSTEM: &str = "system";

/// Why an event was refused. The text form is part of dead letters and problem documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// There is no such conversation.
    NoSuchConversation,
    /// It was created before, with other content.
    ExistsWithOtherContent,
    /// A list of members that cannot be.
    BadMembers,
    /// The members of a direct chat never change.
    DirectIsFixed,
    /// The actor is no member at that point.
    NotAMember,
    /// There is no message with that seq.
    NoSuchSeq,
    /// Only a service may do this.
    NotAllowed,
}

impl Reason {
    /// Every reason, in the order they are checked.
    pub const ALL: [Self; 7] = [
        Self::NoSuchConversation,
        Self::ExistsWithOtherContent,
        Self::BadMembers,
        Self::DirectIsFixed,
        Self::NotAMember,
        Self::NoSuchSeq,
        Self::NotAllowed,
    ];

    /// The reason's name, as dead letters and problem documents carry it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSuchConversation => "no_such_conversation",
            Self::ExistsWithOtherContent => "exists_with_other_content",
            Self::BadMembers => "bad_members",
            Self::DirectIsFixed => "direct_is_fixed",
            Self::NotAMember => "not_a_member",
            Self::NoSuchSeq => "no_such_seq",
            Self::NotAllowed => "not_allowed",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An accepted event and what it does.
#[derive(Debug, Clone)]
pub struct Accepted<'a> {
    /// Its record's offset.
    pub offset: Offset,
    /// Log time as of its record.
    pub log_time: LogTime,
    /// The event.
    pub event: &'a Event,
    /// What it does.
    pub effect: Effect<'a>,
}

impl Accepted<'_> {
    /// What is known before the event: facts of records below its offset.
    pub(crate) fn before(&self) -> NextOffset {
        NextOffset::new(self.offset.get())
    }

    /// What is known with the event: facts of records up to its offset.
    pub(crate) fn after(&self) -> NextOffset {
        NextOffset::after(self.offset)
    }
}

/// What an accepted event does, with everything resolved that the conversation's state decides.
#[derive(Debug, Clone)]
pub enum Effect<'a> {
    /// Nothing: the conversation exists with the same content.
    Nothing,
    /// The conversation begins with these members.
    Created(&'a ConversationCreated, BTreeSet<UserId>),
    /// Title or history change.
    Changed {
        /// The new title.
        title: Option<&'a str>,
        /// The new history setting.
        history: Option<History>,
    },
    /// Users who were no members join.
    Joined {
        /// Who joins.
        users: BTreeSet<UserId>,
        /// Their first seq.
        since: Seq,
        /// Whether they may see what was before their first join.
        opens: bool,
    },
    /// Users who were members leave.
    Left {
        /// Who leaves.
        users: BTreeSet<UserId>,
        /// Their last seq.
        until: Seq,
    },
    /// A message takes a seq.
    Sent {
        /// The seq.
        seq: Seq,
        /// The message.
        message: &'a MessageSent,
    },
    /// A message's text is replaced.
    Edited(&'a MessageEdited),
    /// A message is taken back.
    Recalled(Seq),
    /// The actor hides a message.
    Hidden(Seq),
    /// The actor has read up to a seq, which exists or is 0.
    Read(Seq),
    /// The actor marks unread from a seq on, which is not 0.
    MarkedUnread(Seq),
    /// The actor's settings change.
    Settings(&'a SessionChanged),
    /// The actor clears everything up to a seq: the last.
    Cleared(Seq),
    /// The actor takes the conversation off their list at a seq: the last.
    Removed(Seq),
    /// A device of the actor has stored up to a seq, which exists or is 0.
    Acked {
        /// The seq.
        seq: Seq,
        /// The device.
        device: &'a DeviceId,
    },
}

impl Effect<'_> {
    /// The seq that the event took, if it is a message.
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Self::Sent { seq, .. } => Some(*seq),
            Self::Nothing
            | Self::Created(..)
            | Self::Changed { .. }
            | Self::Joined { .. }
            | Self::Left { .. }
            | Self::Edited(_)
            | Self::Recalled(_)
            | Self::Hidden(_)
            | Self::Read(_)
            | Self::MarkedUnread(_)
            | Self::Settings(_)
            | Self::Cleared(_)
            | Self::Removed(_)
            | Self::Acked { .. } => None,
        }
    }
}

/// A hash of what a conversation is created with: the same content, in any order of members, gives the same.
pub fn creation_digest(created: &ConversationCreated) -> u64 {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(&[
        matches!(created.kind, Kind::Direct) as u8,
        matches!(created.history, History::All) as u8,
    ]);
    hasher.update(&(created.title.len() as u64).to_le_bytes());
    hasher.update(created.title.as_bytes());
    for member in created.members.iter().collect::<BTreeSet<_>>() {
        hasher.update(&(member.as_str().len() as u64).to_le_bytes());
        hasher.update(member.as_str().as_bytes());
    }
    hasher.digest()
}

/// What a record comes to, its id not being a duplicate's.
pub(crate) type Judgement<'a> = Result<Effect<'a>, Reason>;

/// Judges the first event of a conversation that does not exist.
pub(crate) fn judge_first(event: &Event) -> Judgement<'_> {
    let Payload::ConversationCreated(created) = &event.payload else {
        return Err(Reason::NoSuchConversation);
    };
    let members: BTreeSet<UserId> = created.members.iter().cloned().collect();
    let is_sound = match created.kind {
        Kind::Direct => members.len() == 2 && created.members.len() == 2,
        Kind::Group => !members.is_empty() && created.members.len() <= MAX_MEMBERS_PER_EVENT,
    };
    if !is_sound || !event.by_service && !members.contains(&event.actor) {
        return Err(Reason::BadMembers);
    }
    Ok(Effect::Created(created, members))
}

/// Judges an event of a conversation that exists, duplicates already told apart.
///
/// The outer error says which members must be loaded first.
pub(crate) fn judge<'a, V: View>(
    record: &'a Record,
    head: &Head<V::Extra>,
    members: &Members,
) -> Result<Judgement<'a>, Stop<V>> {
    let event = &record.event;
    // What is refused whoever asks, and does not need the members to be loaded.
    match &event.payload {
        Payload::ConversationCreated(created) => {
            return Ok(if creation_digest(created) == head.creation {
                Ok(Effect::Nothing)
            } else {
                Err(Reason::ExistsWithOtherContent)
            });
        }
        Payload::MembersAdded(_) | Payload::MembersRemoved(_) => {
            if listed(&event.payload).len() > MAX_MEMBERS_PER_EVENT {
                return Ok(Err(Reason::BadMembers));
            }
            if head.kind == Kind::Direct {
                return Ok(Err(Reason::DirectIsFixed));
            }
        }
        _ => {}
    }

    let mut asked = BTreeSet::new();
    let needs_membership = !(event.by_service && service_may(&event.payload));
    if needs_membership {
        asked.insert(&event.actor);
    }
    asked.extend(listed(&event.payload));
    let missing: BTreeSet<_> = asked
        .iter()
        .filter(|user| !members.knows(user))
        .map(|user| Need::Member((*user).clone()))
        .collect();
    if !missing.is_empty() {
        return Err(Stop::Needs(missing));
    }

    let is_present = |user: &UserId| {
        members
            .get(user)
            .is_some_and(|member| member.is_present_as_of(record.offset))
    };
    if needs_membership && !is_present(&event.actor) {
        return Ok(Err(Reason::NotAMember));
    }
    Ok(effect_of(event, head.last_seq, head.history, is_present))
}

/// The effect of an event whose actor may act, or why there is none.
fn effect_of(
    event: &Event,
    last: Seq,
    history: History,
    is_present: impl Fn(&UserId) -> bool,
) -> Judgement<'_> {
    let exists = |seq: Seq| Seq::FIRST <= seq && seq <= last;
    let existing = |seq: Seq| {
        if exists(seq) {
            Ok(seq)
        } else {
            Err(Reason::NoSuchSeq)
        }
    };
    match &event.payload {
        Payload::ConversationCreated(_) => Ok(Effect::Nothing),
        Payload::ConversationChanged(changed) => Ok(Effect::Changed {
            title: changed.title.as_deref(),
            history: changed.history,
        }),
        Payload::MembersAdded(added) => Ok(Effect::Joined {
            users: added
                .members
                .iter()
                .filter(|user| !is_present(user))
                .cloned()
                .collect(),
            since: last.next(),
            opens: history == History::All,
        }),
        Payload::MembersRemoved(removed) => Ok(Effect::Left {
            users: removed
                .members
                .iter()
                .filter(|user| is_present(user))
                .cloned()
                .collect(),
            until: last,
        }),
        Payload::MessageSent(message) => {
            if message.reply_to.is_some_and(|seq| !exists(seq)) {
                return Err(Reason::NoSuchSeq);
            }
            if message.content_type == SYSTEM && !event.by_service {
                return Err(Reason::NotAllowed);
            }
            Ok(Effect::Sent {
                seq: last.next(),
                message,
            })
        }
        Payload::MessageEdited(edited) => existing(edited.seq).map(|_| Effect::Edited(edited)),
        Payload::MessageRecalled(recalled) => existing(recalled.seq).map(Effect::Recalled),
        Payload::MessageHidden(hidden) => existing(hidden.seq).map(Effect::Hidden),
        Payload::ReadAdvanced(read) => Ok(Effect::Read(read.seq.min(last))),
        Payload::MarkedUnread(marked) => {
            if marked.from_seq < Seq::FIRST {
                return Err(Reason::NoSuchSeq);
            }
            Ok(Effect::MarkedUnread(marked.from_seq))
        }
        Payload::SessionChanged(changed) => Ok(Effect::Settings(changed)),
        Payload::HistoryCleared(_) => Ok(Effect::Cleared(last)),
        Payload::SessionRemoved(_) => Ok(Effect::Removed(last)),
        Payload::InboxAcked(acked) => Ok(Effect::Acked {
            seq: acked.seq.min(last),
            device: &acked.device,
        }),
    }
}

/// Users that an event names as joining or leaving.
pub(crate) fn listed(payload: &Payload) -> &[UserId] {
    match payload {
        Payload::MembersAdded(added) => &added.members,
        Payload::MembersRemoved(removed) => &removed.members,
        _ => &[],
    }
}

/// What a service may do without being a member: everything but what is about the actor's own state.
fn service_may(payload: &Payload) -> bool {
    match payload {
        Payload::ConversationCreated(_)
        | Payload::ConversationChanged(_)
        | Payload::MembersAdded(_)
        | Payload::MembersRemoved(_)
        | Payload::MessageSent(_)
        | Payload::MessageEdited(_)
        | Payload::MessageRecalled(_) => true,
        Payload::MessageHidden(_)
        | Payload::ReadAdvanced(_)
        | Payload::MarkedUnread(_)
        | Payload::SessionChanged(_)
        | Payload::HistoryCleared(_)
        | Payload::SessionRemoved(_)
        | Payload::InboxAcked(_) => false,
    }
}
