//! Calls that change something: each makes events, is judged by what roaming holds, and appends.
//!
//! The order is: what can be meant at all (limits, members), then who may, then the log. An answer of 202 comes after
//! all in-sync replicas have the events, never before. An event id that was accepted lately is never refused: the
//! caller repeats a call whose answer got lost, and what has changed since, perhaps by that very call, does not matter.

mod bulk;
mod conversations;
mod fate;
mod messages;
mod own;

use std::{future::Future, time::Duration};

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tidemark_event::{ConversationId, Event, EventId, Payload, Position, check_limits};
use tidemark_fold::roaming::Roaming;
use tokio::time::Instant;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

pub(crate) use self::fate::{Fate, of as fate_of, refused};
use crate::{
    app::App,
    append::{AppendError, Appender},
    judge, metrics,
    problem::{Answer, Kind, Problem},
    request::Caller,
    room,
    views::Opened,
};

/// The calls of this module, but for the bulk append, which takes another size of body.
pub(crate) fn calls() -> OpenApiRouter<std::sync::Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(conversations::create, conversations::change))
        .routes(routes!(conversations::change_members))
        .routes(routes!(messages::send))
        .routes(routes!(messages::edit, messages::take_back))
        .routes(routes!(own::read))
        .routes(routes!(own::mark_unread))
        .routes(routes!(own::change_session))
        .routes(routes!(own::clear_history))
        .routes(routes!(own::remove_session))
        .routes(routes!(own::acknowledge))
}

/// The bulk append.
pub(crate) fn bulk_call() -> OpenApiRouter<std::sync::Arc<App>> {
    OpenApiRouter::new().routes(routes!(bulk::append))
}

/// What each call takes from its query, for the test that holds the document against it.
#[cfg(test)]
pub(crate) fn parameters() -> Vec<(&'static str, Vec<String>)> {
    use crate::request::Params;

    let without = [
        "PUT /v1/conversations/{conversation_id}",
        "PATCH /v1/conversations/{conversation_id}",
        "POST /v1/conversations/{conversation_id}/members",
        "PATCH /v1/conversations/{conversation_id}/messages/{seq}",
        "PUT /v1/conversations/{conversation_id}/read",
        "PUT /v1/conversations/{conversation_id}/unread",
        "PATCH /v1/conversations/{conversation_id}/session",
        "PUT /v1/inbox/ack",
        "POST /v1/events",
    ];
    let with = [
        (
            "POST /v1/conversations/{conversation_id}/messages",
            Params::asked_by::<messages::SendQuery>(),
        ),
        (
            "DELETE /v1/conversations/{conversation_id}/messages/{seq}",
            Params::asked_by::<messages::TakeBackQuery>(),
        ),
        (
            "DELETE /v1/conversations/{conversation_id}/history",
            Params::asked_by::<own::NoBody>(),
        ),
        (
            "DELETE /v1/sessions/{conversation_id}",
            Params::asked_by::<own::NoBody>(),
        ),
    ];
    let without = without.map(|call| (call, Params::asked_by::<()>()));
    without.into_iter().chain(with).collect()
}

/// What a caller wants to be in a conversation's log.
#[derive(Debug)]
struct Write {
    conversation: ConversationId,
    /// The caller's own id, where they gave one: they may be repeating a call.
    event_id: Option<EventId>,
    /// The caller's own clock.
    occurred_at: Option<i64>,
    /// One call may take several events.
    payloads: Vec<Payload>,
}

/// Where a write stands in the log.
#[derive(Debug, Clone, Copy)]
struct Written {
    event_id: EventId,
    position: Position,
}

/// What the log has accepted to keep: whether the views accept it is theirs to say.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Accepted)]
pub(crate) struct AcceptedJson {
    /// The event's id: the caller's, or the one that was made.
    #[schema(value_type = String, format = Uuid)]
    pub(crate) event_id: EventId,
    /// Where it stands in the log: hand it to a read as `at`, as it is.
    #[schema(example = "3-1204")]
    pub(crate) position: String,
}

impl From<Written> for AcceptedJson {
    fn from(written: Written) -> Self {
        Self {
            event_id: written.event_id,
            position: written.position.to_string(),
        }
    }
}

impl IntoResponse for Written {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(AcceptedJson::from(self))).into_response()
    }
}

impl Write {
    fn of(conversation: ConversationId, event_id: Option<EventId>, payload: Payload) -> Self {
        Self {
            conversation,
            event_id,
            occurred_at: None,
            payloads: vec![payload],
        }
    }

    /// The events of the call, and its own id: that of the first.
    fn events(self, caller: &Caller) -> Answer<(EventId, Vec<Event>)> {
        let id = self
            .event_id
            .unwrap_or_else(|| EventId::new(Uuid::now_v7()));
        let mut events = Vec::with_capacity(self.payloads.len());
        for (part, payload) in (0..).zip(self.payloads) {
            let event = Event {
                id: id.part(part),
                conversation: self.conversation.clone(),
                actor: caller.user.clone(),
                by_service: caller.is_service,
                occurred_at: self.occurred_at,
                body_key: None,
                payload,
            };
            check_limits(&event)?;
            events.push(event);
        }
        Ok((id, events))
    }
}

/// Judges a write to a conversation that must exist, and appends it. The first payload stands for all.
async fn write(app: &App, caller: &Caller, write: Write) -> Answer<Written> {
    let is_callers_own_id = write.event_id.is_some();
    let conversation = write.conversation.clone();
    let (id, events) = write.events(caller)?;
    let Some(first) = events.first() else {
        return Err(Problem::internal());
    };
    let judge = async {
        let view = app.views.roaming.get().await?;
        let judged = app
            .judged(&view, app.partition_of(&conversation), || {
                may_write(app, &view, caller, &conversation, &first.payload)
            })
            .await;
        match judged {
            Ok(()) => Ok(None),
            Err(refusal) if is_callers_own_id && refusal.is_refusal() => {
                let earlier = repeated(app, &view, &conversation, id).await?;
                earlier.map(Some).ok_or(refusal)
            }
            Err(problem) => Err(problem),
        }
    };
    match in_time(app, judge).await? {
        Some(earlier) => Ok(earlier),
        None => append(app, id, events).await,
    }
}

/// Bounds what comes before an append: whoever is told that it took too long knows that nothing was appended.
async fn in_time<T>(app: &App, judge: impl Future<Output = Answer<T>>) -> Answer<T> {
    match tokio::time::timeout(app.settings.waits.judge, judge).await {
        Ok(judged) => judged,
        Err(_) => Err(Problem::new(
            Kind::StoreUnavailable,
            "the views could not be read in time: nothing was changed",
        )),
    }
}

async fn may_write(
    app: &App,
    view: &Opened<Roaming>,
    caller: &Caller,
    conversation: &ConversationId,
    payload: &Payload,
) -> Answer<()> {
    let (room, _) = room::enter(app, view, conversation, caller).await?;
    judge::judge(conversation, payload, caller, &room, None)?;
    let Some(seq) = judge::message_of(payload, caller) else {
        return Ok(());
    };
    let message = room::message(view, conversation, seq).await?;
    judge::judge(conversation, payload, caller, &room, Some(&message))
}

/// Where an event with this id was accepted before, if it was, within the dedupe window.
async fn repeated(
    app: &App,
    view: &Opened<Roaming>,
    conversation: &ConversationId,
    id: EventId,
) -> Answer<Option<Written>> {
    let Fate::Accepted(accepted) = fate::of(app, view, conversation, id).await? else {
        return Ok(None);
    };
    Ok(Some(Written {
        event_id: id,
        position: Position {
            partition: app.partition_of(conversation),
            offset: accepted.offset,
        },
    }))
}

/// Appends the events of one call, and returns where the last stands.
async fn append(app: &App, id: EventId, events: Vec<Event>) -> Answer<Written> {
    let appended = match events.as_slice() {
        [event] => append_one(&app.appender, event).await,
        _ => append_several(app.appender.clone(), events).await?,
    };
    match appended {
        Ok(position) => Ok(Written {
            event_id: id,
            position,
        }),
        Err(error) => Err(Problem::append(id, &error)),
    }
}

async fn append_one(appender: &Appender, event: &Event) -> Result<Position, AppendError> {
    let began = Instant::now();
    let appended = appender.append(event).await;
    count(&appended, began.elapsed());
    appended
}

/// Appends in a task of its own: a caller who hangs up does not leave half a call in the log.
async fn append_several(
    appender: Appender,
    events: Vec<Event>,
) -> Answer<Result<Position, AppendError>> {
    let task = tokio::spawn(async move {
        let began = Instant::now();
        let mut last = None;
        for appended in appender.append_all(&events).await {
            count(&appended, began.elapsed());
            last = Some(appended?);
        }
        Ok(last)
    });
    match task.await {
        Ok(Ok(Some(position))) => Ok(Ok(position)),
        Ok(Err(error)) => Ok(Err(error)),
        Ok(Ok(None)) | Err(_) => Err(Problem::internal()),
    }
}

fn count(appended: &Result<Position, AppendError>, took: Duration) {
    let outcome = match appended {
        Ok(_) => "appended",
        Err(error) if error.is_surely_not_appended() => "not_appended",
        Err(_) => "unknown",
    };
    metrics::appended(outcome, took);
}
