//! Events as lines of JSON, as people and scripts write and read them.
//!
//! ```json
//! {"conversation_id": "g1", "actor": "bo", "type": "MessageSent", "payload": {"body": "hello"}}
//! ```
//!
//! | field | when absent |
//! | --- | --- |
//! | `event_id` | a UUID v7 is made |
//! | `conversation_id`, `actor`, `type`, `payload` | refused |
//! | `by_service` | true: who may append lines is a service, and answers for what they say |
//! | `occurred_at`, RFC 3339, kept to the millisecond | none |
//! | `body_key` | none |
//! | in the payload: `title` of a creation | empty |
//! | `history` of a creation | `from_join` |
//! | `content_type` | `text` |
//! | `mentions` of a message, `mention_all`, `silent` | none, false, false |
//! | `reply_to`, and whatever a change leaves as it is | none |
//!
//! null is the same as absent. A field that the form or the payload's type does not have is refused by name, so
//! that a misspelt one is not taken for absent; so is one that stands twice. Both directions are spelled out
//! here, not derived: the form is a contract of its own, and each refusal names its field.

mod fields;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use self::fields::{Fields, Line, Object};
use crate::{
    ConversationChanged, ConversationCreated, Event, EventId, History, HistoryCleared, InboxAcked,
    LimitError, MarkedUnread, MembersAdded, MembersRemoved, MessageEdited, MessageHidden,
    MessageRecalled, MessageSent, Payload, ReadAdvanced, SessionChanged, SessionRemoved,
    check_limits,
};

/// Why a line is no event. Fields of the payload are named `payload.body`.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is not one JSON object with an object as its payload, or a field stands in it twice.
    #[error("the line is not one JSON object with an object as its payload")]
    Json {
        /// What is wrong, with the column.
        source: serde_json::Error,
    },
    /// A field without a default is absent.
    #[error("{field} is missing")]
    Missing {
        /// The field.
        field: String,
    },
    /// A field means nothing here.
    #[error("{field} is not a field of {of}")]
    Unknown {
        /// The field.
        field: String,
        /// The event's type for a field of its payload, else `an event`.
        of: String,
    },
    /// The event's type is none.
    #[error("type is {found:?}, which is no type of event")]
    UnknownType {
        /// What stands there.
        found: String,
    },
    /// A field's value cannot be one.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field, with the index where it is an entry of a list.
        field: String,
        /// What is wrong with its value.
        reason: String,
    },
    /// The event is too large.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Reads one line.
///
/// # Errors
/// [`LineError`] names the field and what is wrong with it; the first one found.
pub fn parse_line(line: &str) -> Result<Event, LineError> {
    let line: Line = serde_json::from_str(line).map_err(|source| LineError::Json { source })?;
    let mut envelope = Fields::new("an event".to_owned(), "", line.envelope);
    let id = match envelope.optional("event_id")? {
        Some(id) => id,
        None => EventId::new(Uuid::now_v7()),
    };
    let conversation = envelope.required("conversation_id")?;
    let actor = envelope.required("actor")?;
    let by_service = envelope.optional("by_service")?.unwrap_or(true);
    let occurred_at = envelope.time("occurred_at")?;
    let body_key = envelope.optional("body_key")?;
    let type_name: String = envelope.required("type")?;
    envelope.end()?;
    let payload = match line.payload {
        Some(fields) => parse_payload(type_name, fields)?,
        None => {
            return Err(LineError::Missing {
                field: "payload".to_owned(),
            });
        }
    };
    let event = Event {
        id,
        conversation,
        actor,
        by_service,
        occurred_at,
        body_key,
        payload,
    };
    check_limits(&event)?;
    Ok(event)
}

/// Writes an event as a line's object, from which [`parse_line`] makes the same event.
///
/// What is absent is left out. So is an `occurred_at` that [`rfc3339`] cannot write.
pub fn to_json(event: &Event) -> Value {
    object([
        ("event_id", Some(json!(event.id))),
        ("conversation_id", Some(json!(event.conversation))),
        ("actor", Some(json!(event.actor))),
        ("by_service", Some(json!(event.by_service))),
        (
            "occurred_at",
            event.occurred_at.and_then(rfc3339).map(Value::from),
        ),
        ("body_key", event.body_key.as_ref().map(|key| json!(key))),
        ("type", Some(json!(event.payload.type_name()))),
        ("payload", Some(payload_to_json(&event.payload))),
    ])
}

/// Milliseconds since 1970 as RFC 3339 in UTC; none outside the years 0 to 9999, which it cannot write.
pub fn rfc3339(millis: i64) -> Option<String> {
    /// 0000-01-01T00:00:00Z.
    const YEAR_ZERO: i64 = -62_167_219_200_000;
    if millis < YEAR_ZERO {
        return None;
    }
    // jiff knows no later year than 9999 either.
    Timestamp::from_millisecond(millis)
        .ok()
        .map(|time| time.to_string())
}

fn parse_payload(type_name: String, fields: Object) -> Result<Payload, LineError> {
    let mut fields = Fields::new(type_name, "payload.", fields);
    let payload = match fields.of() {
        "ConversationCreated" => Payload::ConversationCreated(ConversationCreated {
            kind: fields.required("kind")?,
            members: fields.required_users("members")?,
            title: fields.optional("title")?.unwrap_or_default(),
            history: fields.optional("history")?.unwrap_or(History::FromJoin),
        }),
        "ConversationChanged" => Payload::ConversationChanged(ConversationChanged {
            title: fields.optional("title")?,
            history: fields.optional("history")?,
        }),
        "MembersAdded" => Payload::MembersAdded(MembersAdded {
            members: fields.required_users("members")?,
        }),
        "MembersRemoved" => Payload::MembersRemoved(MembersRemoved {
            members: fields.required_users("members")?,
        }),
        "MessageSent" => Payload::MessageSent(MessageSent {
            body: fields.required("body")?,
            content_type: fields
                .optional("content_type")?
                .unwrap_or_else(|| "text".to_owned()),
            mentions: fields.users("mentions")?.unwrap_or_default(),
            mention_all: fields.optional("mention_all")?.unwrap_or(false),
            silent: fields.optional("silent")?.unwrap_or(false),
            reply_to: fields.optional("reply_to")?,
        }),
        "MessageEdited" => Payload::MessageEdited(MessageEdited {
            seq: fields.required("seq")?,
            body: fields.required("body")?,
            mentions: fields.users("mentions")?,
        }),
        "MessageRecalled" => Payload::MessageRecalled(MessageRecalled {
            seq: fields.required("seq")?,
        }),
        "MessageHidden" => Payload::MessageHidden(MessageHidden {
            seq: fields.required("seq")?,
        }),
        "ReadAdvanced" => Payload::ReadAdvanced(ReadAdvanced {
            seq: fields.required("seq")?,
        }),
        "MarkedUnread" => Payload::MarkedUnread(MarkedUnread {
            from_seq: fields.required("from_seq")?,
        }),
        "SessionChanged" => Payload::SessionChanged(SessionChanged {
            pinned: fields.optional("pinned")?,
            muted: fields.optional("muted")?,
            draft: fields.optional("draft")?,
        }),
        "HistoryCleared" => Payload::HistoryCleared(HistoryCleared {}),
        "SessionRemoved" => Payload::SessionRemoved(SessionRemoved {}),
        "InboxAcked" => Payload::InboxAcked(InboxAcked {
            seq: fields.required("seq")?,
            device: fields.required("device")?,
        }),
        _ => {
            return Err(LineError::UnknownType {
                found: fields.of().to_owned(),
            });
        }
    };
    fields.end()?;
    Ok(payload)
}

fn payload_to_json(payload: &Payload) -> Value {
    match payload {
        Payload::ConversationCreated(ConversationCreated {
            kind,
            members,
            title,
            history,
        }) => {
            json!({ "kind": kind, "members": members, "title": title, "history": history })
        }
        Payload::ConversationChanged(ConversationChanged { title, history }) => object([
            ("title", title.as_ref().map(|title| json!(title))),
            ("history", history.map(|history| json!(history))),
        ]),
        Payload::MembersAdded(MembersAdded { members }) => json!({ "members": members }),
        Payload::MembersRemoved(MembersRemoved { members }) => json!({ "members": members }),
        Payload::MessageSent(MessageSent {
            body,
            content_type,
            mentions,
            mention_all,
            silent,
            reply_to,
        }) => object([
            ("body", Some(json!(body))),
            ("content_type", Some(json!(content_type))),
            ("mentions", Some(json!(mentions))),
            ("mention_all", Some(json!(mention_all))),
            ("silent", Some(json!(silent))),
            ("reply_to", reply_to.map(|seq| json!(seq))),
        ]),
        Payload::MessageEdited(MessageEdited {
            seq,
            body,
            mentions,
        }) => object([
            ("seq", Some(json!(seq))),
            ("body", Some(json!(body))),
            (
                "mentions",
                mentions.as_ref().map(|mentions| json!(mentions)),
            ),
        ]),
        Payload::MessageRecalled(MessageRecalled { seq })
        | Payload::MessageHidden(MessageHidden { seq })
        | Payload::ReadAdvanced(ReadAdvanced { seq }) => json!({ "seq": seq }),
        Payload::MarkedUnread(MarkedUnread { from_seq }) => json!({ "from_seq": from_seq }),
        Payload::SessionChanged(SessionChanged {
            pinned,
            muted,
            draft,
        }) => object([
            ("pinned", pinned.map(Value::from)),
            ("muted", muted.map(Value::from)),
            ("draft", draft.as_ref().map(|draft| json!(draft))),
        ]),
        Payload::HistoryCleared(HistoryCleared {}) | Payload::SessionRemoved(SessionRemoved {}) => {
            json!({})
        }
        Payload::InboxAcked(InboxAcked { seq, device }) => json!({ "seq": seq, "device": device }),
    }
}

/// An object of the fields that are there.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let there = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(there.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests;
