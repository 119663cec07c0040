//! Logs written by hand, as chat.
//!
//! ```
//! use tidemark_model::{Model, Settings, story::*};
//!
//! let log = story([group(["anna", "bo"]), sent("bo").times(3), read("anna", 2)]);
//! let model = Model::of(&log, &Settings::default());
//! assert_eq!(model.session(&user("anna"), &conversation("g1")).map(|session| session.unread), Some(1));
//! ```
//!
//! Everything happens in `g1` unless told otherwise, each event a second after the one before it, at the next
//! offset, with an id of its own. A detail that does not fit the event (a silent read) panics: it is a slip
//! of the test's author.

use tidemark_event::{
    ConversationChanged, ConversationCreated, ConversationId, DeviceId, Event, EventId, History,
    HistoryCleared, InboxAcked, Kind, LogTime, MarkedUnread, MembersAdded, MembersRemoved,
    MessageEdited, MessageHidden, MessageRecalled, MessageSent, Offset, Payload, ReadAdvanced, Seq,
    SessionChanged, SessionRemoved, UserId,
};
use uuid::Uuid;

use crate::Logged;

/// No users, where the compiler wants to know no users of what type.
pub const NOBODY: [&str; 0] = [];

/// The log time of a story's first event, in milliseconds: noon on 1 May 2026, UTC.
pub const FIRST_MILLIS: i64 = 1_777_636_800_000;

const MILLIS_BETWEEN_EVENTS: i64 = 1_000;

/// An event that is still being told.
#[derive(Debug, Clone)]
pub struct Told {
    event: Event,
    id: Option<EventId>,
    offset: Option<i64>,
    when: When,
    times: usize,
}

#[derive(Debug, Clone, Copy)]
enum When {
    /// Milliseconds after the event before.
    After(i64),
    /// Milliseconds since 1970 UTC.
    At(i64),
}

/// A user by name.
///
/// # Panics
/// Where no user can have that name.
#[track_caller]
pub fn user(name: impl AsRef<str>) -> UserId {
    UserId::new(name).unwrap_or_else(|error| panic!("{error}"))
}

/// A conversation by name.
///
/// # Panics
/// Where no conversation can have that name.
#[track_caller]
pub fn conversation(name: impl AsRef<str>) -> ConversationId {
    ConversationId::new(name).unwrap_or_else(|error| panic!("{error}"))
}

/// A device by name.
///
/// # Panics
/// Where no device can have that name.
#[track_caller]
pub fn device(name: impl AsRef<str>) -> DeviceId {
    DeviceId::new(name).unwrap_or_else(|error| panic!("{error}"))
}

/// An event id by number.
pub fn event_id(number: u128) -> EventId {
    EventId::new(Uuid::from_u128(number))
}

/// Users by name.
pub fn users(names: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<UserId> {
    names.into_iter().map(user).collect()
}

/// The names of so many users: `crowd-0`, `crowd-1` …
pub fn crowd(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("crowd-{number}")).collect()
}

/// The log that a story makes.
pub fn story(told: impl IntoIterator<Item = Told>) -> Vec<Logged> {
    let mut log = Vec::<Logged>::new();
    let mut next_offset = 0;
    let mut now = FIRST_MILLIS - MILLIS_BETWEEN_EVENTS;
    for told in told {
        for _ in 0..told.times {
            let offset = told.offset.unwrap_or(next_offset);
            next_offset = offset + 1;
            now = match told.when {
                When::After(millis) => now + millis,
                When::At(millis) => millis,
            };
            // Above any number that a test would write.
            let own_id = || event_id((1 << 64) + offset as u128);
            let event = Event {
                id: told.id.unwrap_or_else(own_id),
                ..told.event.clone()
            };
            log.push(Logged {
                offset: Offset::new(offset),
                log_time: LogTime::from_millis(now),
                event,
            });
        }
    }
    log
}

#[track_caller]
fn told(actor: &str, payload: Payload) -> Told {
    Told {
        event: Event {
            id: event_id(0),
            conversation: conversation("g1"),
            actor: user(actor),
            by_service: false,
            occurred_at: None,
            body_key: None,
            payload,
        },
        id: None,
        offset: None,
        when: When::After(MILLIS_BETWEEN_EVENTS),
        times: 1,
    }
}

fn created(kind: Kind, members: Vec<UserId>) -> Told {
    let actor = members.first().map_or("desk", UserId::as_str).to_owned();
    let (title, history) = (String::new(), History::FromJoin);
    told(
        &actor,
        Payload::ConversationCreated(ConversationCreated {
            kind,
            members,
            title,
            history,
        }),
    )
}

/// The first of them creates a group, with history from the join on.
pub fn group(members: impl IntoIterator<Item = impl AsRef<str>>) -> Told {
    created(Kind::Group, users(members))
}

/// The first of them creates a direct chat.
pub fn direct(members: impl IntoIterator<Item = impl AsRef<str>>) -> Told {
    created(Kind::Direct, users(members))
}

/// Somebody changes the title, the history setting, or both.
pub fn changed(actor: &str, title: Option<&str>, history: Option<History>) -> Told {
    let title = title.map(str::to_owned);
    told(
        actor,
        Payload::ConversationChanged(ConversationChanged { title, history }),
    )
}

/// Somebody adds members.
pub fn added(actor: &str, members: impl IntoIterator<Item = impl AsRef<str>>) -> Told {
    told(
        actor,
        Payload::MembersAdded(MembersAdded {
            members: users(members),
        }),
    )
}

/// Somebody removes members, perhaps themselves.
pub fn removed(actor: &str, members: impl IntoIterator<Item = impl AsRef<str>>) -> Told {
    told(
        actor,
        Payload::MembersRemoved(MembersRemoved {
            members: users(members),
        }),
    )
}

/// Somebody sends a text.
pub fn sent(sender: &str) -> Told {
    told(
        sender,
        Payload::MessageSent(MessageSent {
            body: format!("{sender} says something"),
            content_type: "text".to_owned(),
            mentions: Vec::new(),
            mention_all: false,
            silent: false,
            reply_to: None,
        }),
    )
}

/// A service sends a system message, for itself.
pub fn noted(body: &str) -> Told {
    sent("desk")
        .saying(body)
        .content_type("system")
        .by_service()
}

/// A message's text is replaced, by a service unless [`Told::by`] somebody.
pub fn edited(seq: u64, body: &str) -> Told {
    let (seq, body, mentions) = (Seq::new(seq), body.to_owned(), None);
    told(
        "desk",
        Payload::MessageEdited(MessageEdited {
            seq,
            body,
            mentions,
        }),
    )
    .by_service()
}

/// A message is recalled, by a service unless [`Told::by`] somebody.
pub fn recalled(seq: u64) -> Told {
    told(
        "desk",
        Payload::MessageRecalled(MessageRecalled { seq: Seq::new(seq) }),
    )
    .by_service()
}

/// Somebody hides a message for themselves.
pub fn hidden(actor: &str, seq: u64) -> Told {
    told(
        actor,
        Payload::MessageHidden(MessageHidden { seq: Seq::new(seq) }),
    )
}

/// Somebody reads up to a seq.
pub fn read(actor: &str, seq: u64) -> Told {
    told(
        actor,
        Payload::ReadAdvanced(ReadAdvanced { seq: Seq::new(seq) }),
    )
}

/// Somebody marks the conversation unread from a seq on.
pub fn marked_unread(actor: &str, from_seq: u64) -> Told {
    told(
        actor,
        Payload::MarkedUnread(MarkedUnread {
            from_seq: Seq::new(from_seq),
        }),
    )
}

/// Somebody changes settings of their own: pinned, muted, draft.
pub fn session_changed(
    actor: &str,
    pinned: Option<bool>,
    muted: Option<bool>,
    draft: Option<&str>,
) -> Told {
    let draft = draft.map(str::to_owned);
    told(
        actor,
        Payload::SessionChanged(SessionChanged {
            pinned,
            muted,
            draft,
        }),
    )
}

/// Somebody mutes the conversation for themselves.
pub fn muted(actor: &str) -> Told {
    session_changed(actor, None, Some(true), None)
}

/// Somebody ends their muting.
pub fn unmuted(actor: &str) -> Told {
    session_changed(actor, None, Some(false), None)
}

/// Somebody pins the conversation for themselves.
pub fn pinned(actor: &str) -> Told {
    session_changed(actor, Some(true), None, None)
}

/// Somebody begins a text.
pub fn drafted(actor: &str, draft: &str) -> Told {
    session_changed(actor, None, None, Some(draft))
}

/// Somebody clears their history.
pub fn cleared(actor: &str) -> Told {
    told(actor, Payload::HistoryCleared(HistoryCleared {}))
}

/// Somebody takes the conversation off their list.
pub fn session_removed(actor: &str) -> Told {
    told(actor, Payload::SessionRemoved(SessionRemoved {}))
}

/// One of somebody's devices has stored messages up to a seq.
pub fn acked(actor: &str, device_name: &str, seq: u64) -> Told {
    let (seq, device) = (Seq::new(seq), device(device_name));
    told(actor, Payload::InboxAcked(InboxAcked { seq, device }))
}

/// Where, when and by whom.
impl Told {
    /// In this conversation.
    #[track_caller]
    pub fn to(mut self, name: &str) -> Self {
        self.event.conversation = conversation(name);
        self
    }

    /// By this user, who is no service.
    #[track_caller]
    pub fn by(mut self, actor: &str) -> Self {
        self.event.actor = user(actor);
        self.event.by_service = false;
        self
    }

    /// By a service, in the actor's name.
    pub fn by_service(mut self) -> Self {
        self.event.by_service = true;
        self
    }

    /// So many times, each with an id of its own unless one is given.
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// With this event id.
    pub fn id(mut self, number: u128) -> Self {
        self.id = Some(event_id(number));
        self
    }

    /// At this offset, beyond those before it.
    pub fn offset(mut self, offset: i64) -> Self {
        self.offset = Some(offset);
        self
    }

    /// So many milliseconds of log time after the event before.
    pub fn after(mut self, millis: i64) -> Self {
        self.when = When::After(millis);
        self
    }

    /// At this log time.
    pub fn at(mut self, millis: i64) -> Self {
        self.when = When::At(millis);
        self
    }

    /// At this time by the actor's own clock.
    pub fn occurred_at(mut self, millis: i64) -> Self {
        self.event.occurred_at = Some(millis);
        self
    }
}

/// What exactly.
impl Told {
    #[track_caller]
    fn creation(&mut self) -> &mut ConversationCreated {
        match &mut self.event.payload {
            Payload::ConversationCreated(created) => created,
            other => panic!("a detail of a creation told of {}", other.type_name()),
        }
    }

    #[track_caller]
    fn message(&mut self) -> &mut MessageSent {
        match &mut self.event.payload {
            Payload::MessageSent(sent) => sent,
            other => panic!("a detail of a message told of {}", other.type_name()),
        }
    }

    /// A creation with this title.
    #[track_caller]
    pub fn titled(mut self, title: &str) -> Self {
        title.clone_into(&mut self.creation().title);
        self
    }

    /// A creation whose later members see what was before them.
    #[track_caller]
    pub fn with_history(mut self) -> Self {
        self.creation().history = History::All;
        self
    }

    /// A message with this text.
    #[track_caller]
    pub fn saying(mut self, body: &str) -> Self {
        body.clone_into(&mut self.message().body);
        self
    }

    /// A message with content of this type.
    #[track_caller]
    pub fn content_type(mut self, content_type: &str) -> Self {
        content_type.clone_into(&mut self.message().content_type);
        self
    }

    /// A message that never counts as unread.
    #[track_caller]
    pub fn silent(mut self) -> Self {
        self.message().silent = true;
        self
    }

    /// A message that addresses everybody.
    #[track_caller]
    pub fn mentioning_all(mut self) -> Self {
        self.message().mention_all = true;
        self
    }

    /// A message that answers another.
    #[track_caller]
    pub fn replying_to(mut self, seq: u64) -> Self {
        self.message().reply_to = Some(Seq::new(seq));
        self
    }

    /// A message that addresses these by name, or an edit that makes it so.
    #[track_caller]
    pub fn mentioning(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        match &mut self.event.payload {
            Payload::MessageSent(sent) => sent.mentions = users(names),
            Payload::MessageEdited(edited) => edited.mentions = Some(users(names)),
            other => panic!("mentions told of {}", other.type_name()),
        }
        self
    }
}
