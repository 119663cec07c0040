//! Messages: sending, editing, taking back, hiding.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de::Error as _};
use tidemark_event::{
    ConversationId, EventId, MessageEdited, MessageHidden, MessageRecalled, MessageSent, Payload,
    Seq, UserId, rfc3339,
};
use tidemark_fold::{AcceptedId, roaming::Roaming};
use utoipa::ToSchema;

use super::{
    AcceptedJson, Write, Written,
    fate::{self, Fate},
    write,
};
use crate::{
    app::App,
    metrics,
    problem::Answer,
    reached::Target,
    reads::message::MessageJson,
    request::{Body, Caller, FromParams, InConversation, InMessage, Params, Query},
    room,
    views::Opened,
};

/// What a message without a content type is.
const TEXT: &str = "text";

/// A message to be sent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendMessage {
    /// The text, or whatever the content type says: up to 64 KiB.
    #[schema(example = "hello")]
    body: String,
    /// What the body is: `text` if absent, `system` by services only, or a product's own word.
    content_type: Option<String>,
    /// Who is addressed by name.
    #[schema(value_type = Option<Vec<String>>)]
    mentions: Option<Vec<UserId>>,
    /// Everybody but the sender is addressed.
    mention_all: Option<bool>,
    /// Never counted as unread.
    silent: Option<bool>,
    /// The message that this one answers.
    #[schema(value_type = Option<u64>)]
    reply_to: Option<Seq>,
    /// The caller's own id for this event, any UUID.
    #[schema(value_type = Option<String>, format = Uuid)]
    event_id: Option<EventId>,
    /// The caller's own clock, in RFC 3339. Only ever shown.
    #[schema(value_type = Option<String>, format = DateTime)]
    occurred_at: Option<ClientTime>,
}

/// A time in milliseconds since 1970, of a client's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientTime(i64);

impl<'de> Deserialize<'de> for ClientTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let millis = text
            .parse::<Timestamp>()
            .ok()
            .map(Timestamp::as_millisecond);
        match millis.filter(|millis| rfc3339(*millis).is_some()) {
            Some(millis) => Ok(Self(millis)),
            None => Err(D::Error::custom(format_args!(
                "{text:?} is not a time in RFC 3339, as in 2026-03-01T09:30:00Z"
            ))),
        }
    }
}

/// How a message is changed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditMessage {
    /// The new text.
    body: String,
    /// Who is addressed by name from now on; as before if absent.
    #[schema(value_type = Option<Vec<String>>)]
    mentions: Option<Vec<UserId>>,
    /// The caller's own id for this event, any UUID.
    #[schema(value_type = Option<String>, format = Uuid)]
    event_id: Option<EventId>,
}

/// How long a send waits for its message.
#[derive(Debug, Default)]
pub(crate) struct SendQuery {
    wait: Option<Duration>,
}

/// The longest wait that a query may ask for; the gateway's own setting may be shorter.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

impl FromParams for SendQuery {
    fn take(params: &mut Params) -> Self {
        Self {
            wait: params.seconds("wait", LONGEST_WAIT),
        }
    }
}

/// Send a message
///
/// 202 once the log has it. With `wait`, 201 and the message, seq included, once the roaming view has it; where the
/// folds refused it, that as a problem; and 202 where the view is not there in time: `GET …/messages?event_id=` tells
/// later.
#[utoipa::path(
    post,
    path = "/conversations/{conversation_id}/messages",
    operation_id = "send_message",
    tag = "Messages",
    params(
        ("conversation_id" = String, Path, description = "The conversation"),
        ("wait" = Option<f64>, Query, description = "Seconds to wait for the message, 30 at most"),
    ),
    request_body = SendMessage,
    responses(
        (status = 201, description = "The roaming view has it", body = MessageJson),
        (status = 202, description = "The log has it", body = AcceptedJson),
    ),
)]
pub(crate) async fn send(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(query): Query<SendQuery>,
    Body(body): Body<SendMessage>,
) -> Answer<Response> {
    let payload = Payload::MessageSent(MessageSent {
        body: body.body,
        content_type: body.content_type.unwrap_or_else(|| TEXT.to_owned()),
        mentions: body.mentions.unwrap_or_default(),
        mention_all: body.mention_all.unwrap_or(false),
        silent: body.silent.unwrap_or(false),
        reply_to: body.reply_to,
    });
    let call = Write {
        occurred_at: body.occurred_at.map(|time| time.0),
        ..Write::of(conversation.clone(), body.event_id, payload)
    };
    let written = write(&app, &caller, call).await?;
    let Some(wait) = query.wait else {
        return Ok(written.into_response());
    };
    let wait = wait.min(app.settings.waits.send);
    match tokio::time::timeout(wait, outcome(&app, &conversation, written, wait)).await {
        Ok(Ok(Some(message))) => Ok((StatusCode::CREATED, Json(message)).into_response()),
        Ok(Err(problem)) if problem.is_refusal() => Err(problem),
        // The log has it, whatever can be told of it by now.
        Ok(Ok(None) | Err(_)) | Err(_) => Ok(written.into_response()),
    }
}

/// The message that was sent, once the roaming view has it; none where it does not tell in time.
///
/// # Errors
/// The folds refused it.
async fn outcome(
    app: &App,
    conversation: &ConversationId,
    written: Written,
    wait: Duration,
) -> Answer<Option<MessageJson>> {
    let view = app.views.roaming.get().await?;
    let target = Target::after(&[written.position]);
    if app
        .wait(&view, &target, wait, metrics::WAIT_SEND)
        .await
        .is_err()
    {
        return Ok(None);
    }
    match fate::of(app, &view, conversation, written.event_id).await? {
        Fate::Accepted(AcceptedId { seq: Some(seq), .. }) => {
            sent(&view, conversation, seq).await.map(Some)
        }
        Fate::Refused(offset, reason) if offset == written.position.offset => {
            Err(fate::refused(written.event_id, reason))
        }
        // The id is another event's than a message's; or the view has moved on past the window.
        Fate::Accepted(AcceptedId { seq: None, .. }) | Fate::Refused(..) | Fate::Unknown => {
            Ok(None)
        }
    }
}

async fn sent(
    view: &Opened<Roaming>,
    conversation: &ConversationId,
    seq: Seq,
) -> Answer<MessageJson> {
    let message = room::message(view, conversation, seq).await?;
    Ok(MessageJson::of(conversation, &message))
}

/// Edit a message of one's own
///
/// Mentions are kept where none are given; whether everybody is addressed cannot be edited. Of a recalled message
/// nothing changes.
#[utoipa::path(
    patch,
    path = "/conversations/{conversation_id}/messages/{seq}",
    operation_id = "edit_message",
    tag = "Messages",
    params(
        ("conversation_id" = String, Path, description = "The conversation"),
        ("seq" = u64, Path, description = "The message's place in it"),
    ),
    request_body = EditMessage,
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn edit(
    State(app): State<Arc<App>>,
    caller: Caller,
    InMessage(conversation, seq): InMessage,
    Query(()): Query<()>,
    Body(body): Body<EditMessage>,
) -> Answer<Written> {
    let payload = Payload::MessageEdited(MessageEdited {
        seq,
        body: body.body,
        mentions: body.mentions,
    });
    write(
        &app,
        &caller,
        Write::of(conversation, body.event_id, payload),
    )
    .await
}

/// For whom a message is taken back.
#[derive(Debug, Clone, Copy)]
enum For {
    Everyone,
    Me,
}

/// The query of a taking back.
#[derive(Debug)]
pub(crate) struct TakeBackQuery {
    /// Required: none only where the query is refused.
    for_whom: Option<For>,
    event_id: Option<EventId>,
}

impl FromParams for TakeBackQuery {
    fn take(params: &mut Params) -> Self {
        let words = [("everyone", For::Everyone), ("me", For::Me)];
        Self {
            for_whom: params.required_word("for", &words),
            event_id: params.event_id("event_id"),
        }
    }
}

/// Recall a message for everyone, or hide it for oneself
///
/// A recall is the sender's or a service's. A recalled message keeps its seq and shows no body anywhere.
#[utoipa::path(
    delete,
    path = "/conversations/{conversation_id}/messages/{seq}",
    operation_id = "take_back_message",
    tag = "Messages",
    params(
        ("conversation_id" = String, Path, description = "The conversation"),
        ("seq" = u64, Path, description = "The message's place in it"),
        ("for" = String, Query, description = "`everyone`: recall it; `me`: hide it"),
        ("event_id" = Option<String>, Query, description = "The caller's own id for this event, any UUID"),
    ),
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn take_back(
    State(app): State<Arc<App>>,
    caller: Caller,
    InMessage(conversation, seq): InMessage,
    Query(query): Query<TakeBackQuery>,
) -> Answer<Written> {
    let payload = match query.for_whom {
        Some(For::Everyone) => Payload::MessageRecalled(MessageRecalled { seq }),
        Some(For::Me) => Payload::MessageHidden(MessageHidden { seq }),
        None => return Err(crate::problem::Problem::field("for", "is missing")),
    };
    write(
        &app,
        &caller,
        Write::of(conversation, query.event_id, payload),
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_time_is_kept_to_the_millisecond() {
        let time = |text: &str| serde_json::from_value::<ClientTime>(text.into()).ok();
        assert_eq!(
            time("2026-03-01T10:30:00.1234+01:00"),
            Some(ClientTime(1_772_357_400_123))
        );
        for text in ["yesterday", "", "2026-03-01", "-009999-01-01T00:00:00Z"] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn who_takes_back_says_for_whom() {
        let read = |query: &str| Params::parse(query).read::<TakeBackQuery>();
        assert!(matches!(read("for=me").unwrap().for_whom, Some(For::Me)));
        assert!(matches!(
            read("for=everyone").unwrap().for_whom,
            Some(For::Everyone)
        ));
        assert!(read("").is_err());
        assert!(read("for=all").is_err());
    }
}
