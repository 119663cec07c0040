//! One test's people and conversations, apart from those of all others in the same log.
//!
//! A test says `anna` and `g1`. On the wire both carry the scene's tag, so that scenes do not meet; answers are read
//! without it. So a test writes, and compares, plain names.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{Town, User};

/// How large a scene's groups are, and so how they are kept. What anybody sees must not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Nobody joins but those whom the test names.
    AsIs,
    /// At the copy limit: each message is copied into each member's inbox.
    Copied,
    /// Above the copy limit and within the fan-out limit: each message changes each member's session row.
    FannedOut,
    /// Above the fan-out limit: session rows are combined with the conversation's head.
    Combined,
}

impl Size {
    /// Every way in which a group is kept.
    pub const ALL: [Self; 3] = [Self::Copied, Self::FannedOut, Self::Combined];

    fn members(self, town: &Town) -> usize {
        match self {
            Self::AsIs => 0,
            Self::Copied => town.settings().copy_limit,
            Self::FannedOut => town.settings().fan_out_limit,
            Self::Combined => town.settings().fan_out_limit + 2,
        }
    }
}

/// People and conversations of one test.
#[derive(Debug)]
pub struct Scene<'t> {
    town: &'t Town,
    size: Size,
    tag: String,
    client: reqwest::Client,
    /// The newest position that was answered in each conversation: what reads wait for.
    written: Mutex<BTreeMap<String, String>>,
    next_gateway: AtomicUsize,
}

impl<'t> Scene<'t> {
    pub(crate) fn new(town: &'t Town, size: Size) -> Self {
        let random = Uuid::new_v4().simple().to_string();
        Self {
            town,
            size,
            tag: format!(".{}", &random[..8]),
            client: reqwest::Client::new(),
            written: Mutex::default(),
            next_gateway: AtomicUsize::new(0),
        }
    }

    /// Where it is played.
    pub fn town(&self) -> &'t Town {
        self.town
    }

    /// Somebody. Every call of theirs may go through another gateway.
    pub fn user(&self, name: &str) -> User<'_> {
        User::new(self, Some(name), false)
    }

    /// A service, which acts for itself under the name `desk`.
    pub fn service(&self) -> User<'_> {
        User::new(self, Some("desk"), true)
    }

    /// Who says nothing of who they are.
    pub fn nobody(&self) -> User<'_> {
        User::new(self, None, false)
    }

    /// The first of them creates a group with the others, and with as many more as the scene's size wants.
    pub async fn group(&self, conversation: &str, members: &[&str]) {
        self.group_with(conversation, members, json!({})).await;
    }

    /// As [`group`](Self::group), with further fields.
    pub async fn group_with(&self, conversation: &str, members: &[&str], more: Value) {
        let mut body = json!({"kind": "group", "members": self.crowded(members)});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        self.user(members[0]).creates(conversation, body).await;
    }

    /// As [`group`](Self::group), so many at once: `g0`, `g1` …
    pub async fn groups(&self, count: usize, members: &[&str]) {
        let members = self.crowded(members);
        let line = |number| {
            json!({
                "conversation_id": format!("g{number}"), "actor": members[0], "type": "ConversationCreated",
                "payload": {"kind": "group", "members": members},
            })
        };
        let lines: Vec<Value> = (0..count).map(line).collect();
        for answer in self.service().appends(&lines).await {
            assert!(answer["position"].is_string(), "{answer}");
        }
    }

    /// The first of them creates a direct chat with the other.
    pub async fn direct(&self, conversation: &str, members: [&str; 2]) {
        let body = json!({"kind": "direct", "members": members});
        self.user(members[0]).creates(conversation, body).await;
    }

    /// These, and as many more as the scene's size wants.
    pub fn crowded(&self, members: &[&str]) -> Vec<String> {
        let more = self.size.members(self.town).saturating_sub(members.len());
        let crowd = (0..more).map(|number| format!("crowd-{number}"));
        members
            .iter()
            .map(|name| (*name).to_owned())
            .chain(crowd)
            .collect()
    }

    /// A conversation's name that begins with `name` and whose events go to this partition of the log.
    pub fn name_in_partition(&self, name: &str, partition: i32) -> String {
        let partitions = self
            .town
            .settings()
            .partitions
            .try_into()
            .expect("there are some");
        let is_there = |name: &String| {
            let id = tidemark_event::ConversationId::new(self.on_wire(name)).expect("it is an id");
            tidemark_event::partition_of(&id, partitions).get() == partition
        };
        let mut names = (0..).map(|number| format!("{name}-{number}"));
        names.find(is_there).expect("every partition has some")
    }

    /// The bytes of an event of the log that sends a message.
    pub fn message_bytes(&self, conversation: &str, sender: &str, body: &str) -> Vec<u8> {
        let line = json!({
            "conversation_id": self.on_wire(conversation), "actor": self.on_wire(sender), "type": "MessageSent",
            "payload": {"body": body},
        });
        let event = tidemark_event::parse_line(&line.to_string()).expect("it is an event");
        tidemark_event::encode(&event).expect("it is small")
    }

    /// A name as it goes over the wire.
    pub fn on_wire(&self, name: &str) -> String {
        format!("{name}{}", self.tag)
    }

    /// Whether something on the wire is of this scene.
    pub fn is_ours(&self, on_wire: &str) -> bool {
        on_wire.ends_with(&self.tag)
    }

    /// A text from the wire, in the scene's own names.
    pub fn plain(&self, text: &str) -> String {
        text.replace(&self.tag, "")
    }

    /// A value from the wire, in the scene's own names.
    pub fn plain_json(&self, value: &Value) -> Value {
        let text = self.plain(&value.to_string());
        serde_json::from_str(&text).expect("names are plain text")
    }

    /// A body with names as they go over the wire: those in the fields that hold names.
    pub(crate) fn body_on_wire(&self, body: &Value) -> Value {
        const NAMES: [&str; 7] = [
            "members",
            "add",
            "remove",
            "mentions",
            "actor",
            "conversation",
            "conversation_id",
        ];
        match body {
            Value::Object(fields) => {
                let fields = fields.iter().map(|(field, value)| {
                    let value = if NAMES.contains(&field.as_str()) {
                        self.names_on_wire(value)
                    } else {
                        self.body_on_wire(value)
                    };
                    (field.clone(), value)
                });
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }

    fn names_on_wire(&self, names: &Value) -> Value {
        match names {
            Value::String(name) => Value::from(self.on_wire(name)),
            Value::Array(names) => names.iter().map(|name| self.names_on_wire(name)).collect(),
            other => other.clone(),
        }
    }

    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// The gateway that takes the next call of those who do not care: all of them in turn.
    pub(crate) fn any_gateway(&self) -> String {
        let gateways = self.town.gateways();
        let turn = self.next_gateway.fetch_add(1, Ordering::Relaxed);
        gateways[turn % gateways.len()].url()
    }

    /// Remembers what a write in a conversation was answered with.
    pub fn wrote(&self, conversation: &str, position: &str) {
        let (conversation, position) = (conversation.to_owned(), position.to_owned());
        self.written.lock().unwrap().insert(conversation, position);
    }

    /// What a read waits for: `at=…&at=…`.
    pub fn at(&self) -> String {
        let written = self.written.lock().unwrap();
        let pairs: Vec<String> = written
            .values()
            .map(|position| format!("at={position}"))
            .collect();
        pairs.join("&")
    }
}
