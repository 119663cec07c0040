//! What is the caller's own: how far they have read, their settings, their list, their devices.

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use tidemark_event::{
    ConversationId, DeviceId, EventId, HistoryCleared, InboxAcked, MarkedUnread, Payload,
    ReadAdvanced, Seq, SessionChanged, SessionRemoved,
};
use utoipa::ToSchema;

use super::{AcceptedJson, Write, Written, write};
use crate::{
    app::App,
    problem::{Answer, Problem},
    request::{Body, Caller, FromParams, InConversation, Params, Query},
};

/// How far the caller has read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadUpTo {
    /// The newest message read; beyond the last it means the last.
    #[schema(value_type = u64)]
    seq: Seq,
    /// The caller's own id for this event, any UUID.
    #[schema(value_type = Option<String>, format = Uuid)]
    event_id: Option<EventId>,
}

/// From where on the conversation is unread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MarkUnread {
    /// The first message unread again, from 1; above what was read it changes nothing.
    #[schema(value_type = u64, minimum = 1)]
    from_seq: Seq,
    /// The caller's own id for this event, any UUID.
    #[schema(value_type = Option<String>, format = Uuid)]
    event_id: Option<EventId>,
}

/// The caller's own settings of a conversation; what is absent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeSession {
    /// Listed first.
    pinned: Option<bool>,
    /// Left out of the total.
    muted: Option<bool>,
    /// Text begun and not sent; empty for none.
    draft: Option<String>,
    /// The caller's own id for this event, any UUID.
    #[schema(value_type = Option<String>, format = Uuid)]
    event_id: Option<EventId>,
}

/// How far a device has stored a conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Acknowledge {
    /// The conversation.
    #[schema(value_type = String)]
    conversation: ConversationId,
    /// The newest message stored; beyond the last it means the last.
    #[schema(value_type = u64)]
    seq: Seq,
    /// The device that stored it.
    #[schema(value_type = String)]
    device: DeviceId,
    /// The caller's own id for this event, any UUID.
    #[schema(value_type = Option<String>, format = Uuid)]
    event_id: Option<EventId>,
}

/// The query of a call without a body.
#[derive(Debug)]
pub(crate) struct NoBody {
    event_id: Option<EventId>,
}

impl FromParams for NoBody {
    fn take(params: &mut Params) -> Self {
        Self {
            event_id: params.event_id("event_id"),
        }
    }
}

/// Read up to a message
///
/// No further than the last, and never back.
#[utoipa::path(
    put,
    path = "/conversations/{conversation_id}/read",
    operation_id = "read_up_to",
    tag = "Sessions",
    params(("conversation_id" = String, Path, description = "The conversation")),
    request_body = ReadUpTo,
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn read(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(()): Query<()>,
    Body(body): Body<ReadUpTo>,
) -> Answer<Written> {
    let payload = Payload::ReadAdvanced(ReadAdvanced { seq: body.seq });
    write(
        &app,
        &caller,
        Write::of(conversation, body.event_id, payload),
    )
    .await
}

/// Mark a conversation unread from a message on
///
/// The read position becomes the seq before it: the one call that moves it back.
#[utoipa::path(
    put,
    path = "/conversations/{conversation_id}/unread",
    operation_id = "mark_unread",
    tag = "Sessions",
    params(("conversation_id" = String, Path, description = "The conversation")),
    request_body = MarkUnread,
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn mark_unread(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(()): Query<()>,
    Body(body): Body<MarkUnread>,
) -> Answer<Written> {
    if body.from_seq < Seq::FIRST {
        return Err(Problem::field("from_seq", "is 0, and messages begin at 1"));
    }
    let payload = Payload::MarkedUnread(MarkedUnread {
        from_seq: body.from_seq,
    });
    write(
        &app,
        &caller,
        Write::of(conversation, body.event_id, payload),
    )
    .await
}

/// Pin, mute, or keep a draft
#[utoipa::path(
    patch,
    path = "/conversations/{conversation_id}/session",
    operation_id = "change_session",
    tag = "Sessions",
    params(("conversation_id" = String, Path, description = "The conversation")),
    request_body = ChangeSession,
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn change_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(()): Query<()>,
    Body(body): Body<ChangeSession>,
) -> Answer<Written> {
    let changed = SessionChanged {
        pinned: body.pinned,
        muted: body.muted,
        draft: body.draft,
    };
    if changed.pinned.is_none() && changed.muted.is_none() && changed.draft.is_none() {
        return Err(Problem::field(
            "body",
            "changes nothing: give pinned, muted or draft",
        ));
    }
    let payload = Payload::SessionChanged(changed);
    write(
        &app,
        &caller,
        Write::of(conversation, body.event_id, payload),
    )
    .await
}

/// Clear one's own history up to now
#[utoipa::path(
    delete,
    path = "/conversations/{conversation_id}/history",
    operation_id = "clear_history",
    tag = "Sessions",
    params(
        ("conversation_id" = String, Path, description = "The conversation"),
        ("event_id" = Option<String>, Query, description = "The caller's own id for this event, any UUID"),
    ),
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn clear_history(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(query): Query<NoBody>,
) -> Answer<Written> {
    let payload = Payload::HistoryCleared(HistoryCleared {});
    write(
        &app,
        &caller,
        Write::of(conversation, query.event_id, payload),
    )
    .await
}

/// Take a conversation off one's list until its next message
#[utoipa::path(
    delete,
    path = "/sessions/{conversation_id}",
    operation_id = "remove_session",
    tag = "Sessions",
    params(
        ("conversation_id" = String, Path, description = "The conversation"),
        ("event_id" = Option<String>, Query, description = "The caller's own id for this event, any UUID"),
    ),
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn remove_session(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(query): Query<NoBody>,
) -> Answer<Written> {
    let payload = Payload::SessionRemoved(SessionRemoved {});
    write(
        &app,
        &caller,
        Write::of(conversation, query.event_id, payload),
    )
    .await
}

/// Acknowledge that a device has stored a conversation up to a message
#[utoipa::path(
    put,
    path = "/inbox/ack",
    operation_id = "acknowledge_inbox",
    tag = "Inbox",
    request_body = Acknowledge,
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn acknowledge(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(()): Query<()>,
    Body(body): Body<Acknowledge>,
) -> Answer<Written> {
    let payload = Payload::InboxAcked(InboxAcked {
        seq: body.seq,
        device: body.device,
    });
    write(
        &app,
        &caller,
        Write::of(body.conversation, body.event_id, payload),
    )
    .await
}
