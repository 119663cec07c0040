//! One conversation, told event by event.
//!
//! Keeps what a teller must know to tell nothing that would be refused: who is there, and what the last seq is.
//! Time never runs backwards within a chat.

use std::collections::BTreeSet;

use tidemark_event::{
    ConversationCreated, ConversationId, DeviceId, Event, EventId, History, InboxAcked, Kind,
    MembersAdded, MembersRemoved, MessageEdited, MessageRecalled, MessageSent, Payload,
    ReadAdvanced, Seq, SessionChanged, UserId,
};
use uuid::Uuid;

use super::people::Person;

/// The namespace of the story's event ids.
const IDS: Uuid = Uuid::from_u128(0x51f6_0c8e_26d4_4b7b_8a0d_6b1f_04c2_9d3a);

/// A conversation as far as it is told.
#[derive(Debug)]
pub(super) struct Chat {
    conversation: ConversationId,
    /// Tells this story's events from those of a story told at another time.
    story: String,
    present: BTreeSet<UserId>,
    last: Seq,
    /// Events with their times, in milliseconds since 1970.
    told: Vec<(i64, Event)>,
}

/// What a message says, and how.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    pub(super) body: String,
    pub(super) mentions: Vec<UserId>,
    pub(super) mention_all: bool,
    pub(super) silent: bool,
    pub(super) reply_to: Option<Seq>,
}

impl Said {
    pub(super) fn text(body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            ..Self::default()
        }
    }

    pub(super) fn mentioning(self, whom: &Person) -> Self {
        Self {
            mentions: vec![whom.id.clone()],
            ..self
        }
    }
}

impl Chat {
    /// A conversation that nobody has created yet.
    pub(super) fn new(conversation: &str, story: &str) -> Self {
        let conversation = match ConversationId::new(conversation) {
            Ok(conversation) => conversation,
            Err(error) => {
                unreachable!("{conversation:?} is one of the story's conversations: {error}")
            }
        };
        Self {
            conversation,
            story: story.to_owned(),
            present: BTreeSet::new(),
            last: Seq::ZERO,
            told: Vec::new(),
        }
    }

    pub(super) fn conversation(&self) -> &ConversationId {
        &self.conversation
    }

    /// The newest message.
    pub(super) fn last(&self) -> Seq {
        self.last
    }

    /// The events, with their times.
    pub(super) fn into_told(self) -> Vec<(i64, Event)> {
        self.told
    }

    /// The first of them creates it.
    pub(super) fn create(
        &mut self,
        at: i64,
        kind: Kind,
        title: &str,
        history: History,
        members: &[Person],
    ) {
        self.present = members.iter().map(|person| person.id.clone()).collect();
        let created = ConversationCreated {
            kind,
            members: ids(members),
            title: title.to_owned(),
            history,
        };
        self.push(at, &members[0], Payload::ConversationCreated(created));
    }

    pub(super) fn add(&mut self, at: i64, by: &Person, members: &[Person]) {
        self.present
            .extend(members.iter().map(|person| person.id.clone()));
        let members = ids(members);
        self.push(at, by, Payload::MembersAdded(MembersAdded { members }));
    }

    /// Somebody leaves.
    pub(super) fn leave(&mut self, at: i64, who: &Person) {
        let members = vec![who.id.clone()];
        self.push(at, who, Payload::MembersRemoved(MembersRemoved { members }));
        self.present.remove(&who.id);
    }

    pub(super) fn say(&mut self, at: i64, sender: &Person, said: Said) -> Seq {
        let sent = Payload::MessageSent(sent(said, "text"));
        self.push(at, sender, sent);
        self.last
    }

    /// The workplace's own software tells something.
    pub(super) fn note(&mut self, at: i64, body: String) {
        let service = Person::called("workplace");
        let sent = Payload::MessageSent(sent(Said::text(body), "system"));
        self.tell(at, &service, true, sent);
    }

    pub(super) fn edit(
        &mut self,
        at: i64,
        sender: &Person,
        seq: Seq,
        body: String,
        mentions: Option<Vec<UserId>>,
    ) {
        let edited = MessageEdited {
            seq,
            body,
            mentions,
        };
        self.push(at, sender, Payload::MessageEdited(edited));
    }

    pub(super) fn recall(&mut self, at: i64, sender: &Person, seq: Seq) {
        self.push(
            at,
            sender,
            Payload::MessageRecalled(MessageRecalled { seq }),
        );
    }

    /// Somebody reads all there is.
    pub(super) fn read(&mut self, at: i64, reader: &Person) {
        let seq = self.last;
        self.push(at, reader, Payload::ReadAdvanced(ReadAdvanced { seq }));
    }

    /// One of somebody's devices stores all there is.
    pub(super) fn store(&mut self, at: i64, who: &Person, device: &DeviceId) {
        let (seq, device) = (self.last, device.clone());
        self.push(at, who, Payload::InboxAcked(InboxAcked { seq, device }));
    }

    /// Somebody changes their own settings.
    pub(super) fn set(&mut self, at: i64, who: &Person, settings: SessionChanged) {
        self.push(at, who, Payload::SessionChanged(settings));
    }

    fn push(&mut self, at: i64, actor: &Person, payload: Payload) {
        assert!(
            self.present.contains(&actor.id),
            "{} is not in {}",
            actor.name,
            self.conversation
        );
        self.tell(at, actor, false, payload);
    }

    fn tell(&mut self, at: i64, actor: &Person, by_service: bool, payload: Payload) {
        if let Payload::MessageSent(_) = payload {
            self.last = self.last.next();
        }
        let at = self.told.last().map_or(at, |(before, _)| at.max(*before));
        let name = format!("{}/{}/{}", self.story, self.conversation, self.told.len());
        let event = Event {
            id: EventId::new(Uuid::new_v5(&IDS, name.as_bytes())),
            conversation: self.conversation.clone(),
            actor: actor.id.clone(),
            by_service,
            occurred_at: Some(at),
            body_key: None,
            payload,
        };
        self.told.push((at, event));
    }
}

fn sent(said: Said, content_type: &str) -> MessageSent {
    MessageSent {
        body: said.body,
        content_type: content_type.to_owned(),
        mentions: said.mentions,
        mention_all: said.mention_all,
        silent: said.silent,
        reply_to: said.reply_to,
    }
}

fn ids(people: &[Person]) -> Vec<UserId> {
    people.iter().map(|person| person.id.clone()).collect()
}
