//! Holds what the gateway answers against the naive model of the same log.
//!
//! Verifies, for every person and conversation of a scene: the list page by page, its total, mentions, history,
//! members, what each device has not stored, and the dead letters of every view. Reads the log itself, and knows
//! nothing of how the answers came about.
//!
//! Does not verify: sync, filters, single pages other than those of lists, whether anybody is told of a stale answer.

use std::{cmp::Reverse, collections::BTreeMap};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use serde_json::{Value, json};
use tidemark_event::{ConversationId, Kind, LogTime, Offset, UserId, rfc3339};
use tidemark_model::{Message, Model, Session, Verdict};

use crate::{
    Scene, View,
    check::{check, without},
    kafka, until,
};

/// How many a page has of the lists that are read whole: few, so that there are many pages.
const PAGE: usize = 3;

/// Who and what there is in a scene.
#[derive(Debug, Clone)]
pub struct Cast {
    /// Everybody.
    pub people: Vec<String>,
    /// Every conversation that may exist.
    pub conversations: Vec<String>,
    /// Every device; each person has one of each name.
    pub devices: Vec<String>,
}

/// What a scene should have come to, as the naive model reads it from the log.
#[derive(Debug)]
pub struct Expected {
    /// A model a partition of the log: an event's offset is a place in one of them.
    models: BTreeMap<i32, Model>,
}

impl Expected {
    /// Reads the log.
    pub async fn of(scene: &Scene<'_>) -> Self {
        let settings = scene.town().settings().of_model();
        let mut events = kafka::events().await;
        for events in events.values_mut() {
            events.retain(|logged| scene.is_ours(logged.event.conversation.as_str()));
        }
        let models = events
            .iter()
            .map(|(partition, events)| (*partition, Model::of(events, &settings)));
        Self {
            models: models.collect(),
        }
    }

    /// What became of an event.
    pub fn verdict(&self, (partition, offset): kafka::Place) -> Option<Verdict> {
        self.models.get(&partition)?.verdict(Offset::new(offset))
    }

    /// The refused events of the scene, and why.
    pub fn refusals(&self) -> BTreeMap<kafka::Place, String> {
        let mut refusals = BTreeMap::new();
        for (partition, model) in &self.models {
            for (offset, verdict) in model.verdicts() {
                if let Verdict::Refused(reason) = verdict {
                    refusals.insert((*partition, offset.get()), reason.to_owned());
                }
            }
        }
        refusals
    }

    /// The model that holds the conversation.
    fn model(&self, conversation: &ConversationId) -> Option<&Model> {
        self.models
            .values()
            .find(|model| model.exists(conversation))
    }

    fn sessions(&self, user: &UserId) -> Vec<Session> {
        let mut sessions: Vec<Session> = self
            .models
            .values()
            .flat_map(|model| model.sessions(user))
            .collect();
        sessions.sort_by_key(|session| {
            (
                Reverse(session.pinned),
                Reverse(session.last_active_at),
                session.conversation.clone(),
            )
        });
        sessions
    }

    fn total_unread(&self, user: &UserId) -> u64 {
        self.models
            .values()
            .map(|model| model.total_unread(user))
            .sum()
    }

    /// Mentions by conversation, newest first in each.
    fn mentions(&self, user: &UserId) -> BTreeMap<String, Vec<u64>> {
        let mut mentions = BTreeMap::<String, Vec<u64>>::new();
        for mention in self.models.values().flat_map(|model| model.mentions(user)) {
            let conversation = mention.conversation.as_str().to_owned();
            mentions
                .entry(conversation)
                .or_default()
                .push(mention.seq.get());
        }
        mentions
    }
}

/// Compares everything that everybody sees.
///
/// # Panics
/// Where something differs.
pub async fn audit(scene: &Scene<'_>, cast: &Cast) {
    /// Enough to keep two cores busy.
    const AT_ONCE: usize = 4;
    let expected = Expected::of(scene).await;
    let expected = &expected;
    stream::iter(&cast.people)
        .for_each_concurrent(AT_ONCE, async |name| {
            audit_lists(scene, expected, name).await;
            for conversation in &cast.conversations {
                audit_conversation(scene, expected, name, conversation).await;
            }
            for device in &cast.devices {
                audit_inbox(scene, expected, name, device).await;
            }
        })
        .await;
    audit_dead_letters(scene, expected).await;
}

async fn audit_lists(scene: &Scene<'_>, expected: &Expected, name: &str) {
    let (user, id) = (scene.user(name), user_id(scene, name));
    let found = user
        .all(&format!("/sessions?limit={PAGE}"), "sessions")
        .await;
    let wanted: Value = expected.sessions(&id).iter().map(session_json).collect();
    tell(
        scene,
        &format!("{name}'s sessions"),
        &without(&Value::from(found), &["as_of"]),
        &wanted,
    );

    let total = user.total_unread().await;
    tell(
        scene,
        &format!("{name}'s total"),
        &total,
        &json!(expected.total_unread(&id)),
    );

    let mut mentions = BTreeMap::<String, Vec<u64>>::new();
    let mut times = Vec::new();
    for mention in user
        .all(&format!("/mentions?limit={PAGE}"), "mentions")
        .await
    {
        let conversation = mention["conversation_id"].as_str().unwrap().to_owned();
        mentions
            .entry(conversation)
            .or_default()
            .push(mention["seq"].as_u64().unwrap());
        times.push(
            mention["at"]
                .as_str()
                .or(mention["logged_at"].as_str())
                .unwrap_or_default()
                .to_owned(),
        );
    }
    tell(
        scene,
        &format!("{name}'s mentions"),
        &json!(mentions),
        &json!(expected.mentions(&id)),
    );
    assert!(
        times.is_sorted_by(|one, next| one >= next),
        "{name}'s mentions are out of order: {times:?}"
    );
}

async fn audit_conversation(
    scene: &Scene<'_>,
    expected: &Expected,
    name: &str,
    conversation: &str,
) {
    let user = scene.user(name);
    let id = ConversationId::new(scene.on_wire(conversation)).unwrap();
    let path = format!("/conversations/{conversation}");
    let Some(model) = expected.model(&id) else {
        user.read(&format!("{path}/messages"))
            .await
            .is_problem(404, "no_such_conversation");
        return;
    };
    let user_id = user_id(scene, name);
    if !model.ever_members(&id).contains(&user_id) {
        user.read(&format!("{path}/messages"))
            .await
            .is_problem(403, "not_a_member");
        return;
    }
    let found = user
        .all(&format!("{path}/messages?after=0&limit={PAGE}"), "messages")
        .await;
    let seqs = model.history_visible(&user_id, &id);
    let wanted: Value = seqs
        .into_iter()
        .map(|seq| message_json(&id, &model.message(&id, seq).unwrap()))
        .collect();
    tell(
        scene,
        &format!("{name}'s history of {conversation}"),
        &Value::from(found),
        &wanted,
    );

    if model.members(&id).contains_key(&user_id) {
        let mut found = user
            .all(&format!("{path}/members?limit={PAGE}"), "members")
            .await;
        found.sort_by_key(|member| member["user_id"].as_str().map(str::to_owned));
        let wanted: Value = model
            .members(&id)
            .iter()
            .map(|(user, since)| json!({"user_id": user.as_str(), "since": since.get()}))
            .collect();
        tell(
            scene,
            &format!("{conversation}'s members"),
            &Value::from(found),
            &wanted,
        );
    }
}

async fn audit_inbox(scene: &Scene<'_>, expected: &Expected, name: &str, device: &str) {
    let (user, user_id) = (scene.user(name), user_id(scene, name));
    let mut found = BTreeMap::<String, Vec<Value>>::new();
    for message in user.pulls(device, PAGE).await {
        let conversation = message["conversation_id"].as_str().unwrap().to_owned();
        found.entry(conversation).or_default().push(message);
    }
    let device_id = tidemark_event::DeviceId::new(device).unwrap();
    let mut wanted = BTreeMap::<String, Vec<Value>>::new();
    for model in expected.models.values() {
        for id in model.conversations() {
            let pending = model.pending(&user_id, id, &device_id);
            let messages = pending
                .into_iter()
                .map(|seq| message_json(id, &model.message(id, seq).unwrap()));
            let messages: Vec<Value> = messages.collect();
            if !messages.is_empty() {
                wanted.insert(id.as_str().to_owned(), messages);
            }
        }
    }
    tell(
        scene,
        &format!("what {name}'s {device} has not stored"),
        &json!(found),
        &json!(wanted),
    );
}

/// Each refused event is among the dead letters of each view, with the reason, whatever the view's worker went through.
pub async fn audit_dead_letters(scene: &Scene<'_>, expected: &Expected) {
    let wanted = expected.refusals();
    for view in View::ALL {
        // A letter is there before the view has its event; but whoever waits for a view may wait for another one.
        until(
            &format!("the dead letters of {}", view.name()),
            crate::PATIENCE,
            async || {
                let letters = kafka::dead_letters(view).await;
                let ours = letters.into_iter().filter(|(_, letter)| {
                    let key = letter.key.as_deref().unwrap_or_default();
                    scene.is_ours(&String::from_utf8_lossy(key))
                });
                let found: BTreeMap<_, _> = ours
                    .map(|(place, letter)| (place, letter.headers["tidemark-reason"].clone()))
                    .collect();
                if found == wanted {
                    Ok(())
                } else {
                    Err(format!("found {found:?}, expected {wanted:?}"))
                }
            },
        )
        .await;
    }
}

fn user_id(scene: &Scene<'_>, name: &str) -> UserId {
    UserId::new(scene.on_wire(name)).expect("a scene's names are ids")
}

#[track_caller]
fn tell(scene: &Scene<'_>, what: &str, found: &Value, expected: &Value) {
    let expected = scene.plain_json(expected);
    if *found != expected {
        eprintln!("{what}:");
    }
    check(found, &expected);
}

fn session_json(session: &Session) -> Value {
    const MOST_NAMED: usize = 100;
    let mentions: Vec<u64> = session
        .unread_mentions
        .iter()
        .map(|seq| seq.get())
        .collect();
    json!({
        "conversation_id": session.conversation.as_str(),
        "kind": session.kind,
        "title": session.title,
        "last_seq": session.last_seq.get(),
        "last_message": session.last_message.as_ref().map(preview_json),
        "last_active_at": time(session.last_active_at),
        "unread": session.unread,
        "unread_mentions": mentions[mentions.len().saturating_sub(MOST_NAMED)..],
        "unread_mentions_count": mentions.len(),
        "mentioned_all": session.mentioned_all.is_some(),
        "mentioned_all_seq": session.mentioned_all.map(|seq| seq.get()),
        "read_seq": session.read_seq.get(),
        "cleared_to": session.cleared_to.get(),
        "peer_read_seq": match session.kind {
            Kind::Direct => session.peer_read_seq.map(|seq| seq.get()),
            Kind::Group => None,
        },
        "marked_unread": session.marked_unread,
        "pinned": session.pinned,
        "muted": session.muted,
        "draft": session.draft,
        "members": session.members,
        "left": session.left,
    })
}

fn preview_json(message: &Message) -> Value {
    let preview: String = message.body.chars().take(100).collect();
    json!({
        "seq": message.seq.get(),
        "sender": message.sender.as_str(),
        "preview": (!message.recalled).then_some(preview),
        "content_type": message.content_type,
        "recalled": message.recalled,
        "at": time(message.logged_at),
    })
}

fn message_json(conversation: &ConversationId, message: &Message) -> Value {
    let mentions: Vec<&str> = message.mentions.iter().map(UserId::as_str).collect();
    json!({
        "conversation_id": conversation.as_str(),
        "seq": message.seq.get(),
        "event_id": message.event_id,
        "sender": message.sender.as_str(),
        "body": (!message.recalled).then_some(&message.body),
        "content_type": message.content_type,
        "mentions": mentions,
        "mention_all": message.mention_all,
        "silent": message.silent,
        "reply_to": message.reply_to.map(|seq| seq.get()),
        "edited_at": message.edited_at.map(time),
        "recalled": message.recalled,
        "occurred_at": message.occurred_at.map(millis),
        "logged_at": time(message.logged_at),
    })
}

fn time(log_time: LogTime) -> String {
    millis(log_time.millis())
}

/// RFC 3339 in UTC, with milliseconds.
fn millis(millis: i64) -> String {
    assert!(
        rfc3339(millis).is_some(),
        "{millis} is no time that can be written"
    );
    let time = Timestamp::from_millisecond(millis).unwrap();
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}
