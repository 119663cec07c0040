//! Conversations: creating them, changing them, and who belongs to them.

use std::{collections::BTreeSet, sync::Arc};

use axum::extract::State;
use serde::Deserialize;
use tidemark_event::{
    ConversationChanged, ConversationCreated, ConversationId, EventId, History, Kind,
    MAX_MEMBERS_PER_EVENT, MembersAdded, MembersRemoved, Payload, UserId,
};
use utoipa::ToSchema;

use super::{AcceptedJson, Write, Written, append, in_time, repeated, write};
use crate::{
    app::App,
    judge,
    problem::{Answer, Problem},
    request::{Body, Caller, InConversation, Query},
    room,
};

/// How a conversation begins.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateConversation {
    /// `direct`: two people, for ever. `group`: any number, who come and go.
    #[schema(value_type = String, example = "group")]
    kind: Kind,
    /// The first members, the caller among them unless a service creates it.
    #[schema(value_type = Vec<String>, example = json!(["anna", "bo"]))]
    members: Vec<UserId>,
    /// The title; none if absent.
    title: Option<String>,
    /// What later members may see of the time before they joined: `from_join` (nothing, as if absent) or `all`.
    #[schema(value_type = Option<String>, example = "from_join")]
    history: Option<History>,
    /// The caller's own id for this event, any UUID.
    #[schema(value_type = Option<String>, format = Uuid)]
    event_id: Option<EventId>,
}

/// What changes in a conversation; what is absent stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeConversation {
    /// The new title; empty for none.
    title: Option<String>,
    /// What those who join from here on may see: `from_join` or `all`.
    #[schema(value_type = Option<String>, example = "all")]
    history: Option<History>,
    /// The caller's own id for this event, any UUID.
    #[schema(value_type = Option<String>, format = Uuid)]
    event_id: Option<EventId>,
}

/// Who joins and who leaves.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeMembers {
    /// Who joins; who is a member already stays one.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    add: Vec<UserId>,
    /// Who leaves, the caller perhaps; who is none already stays so.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    remove: Vec<UserId>,
    /// The caller's own id for this call, any UUID.
    #[schema(value_type = Option<String>, format = Uuid)]
    event_id: Option<EventId>,
}

/// Create a conversation
///
/// Again with the same content it is accepted and changes nothing; with other content it is a conflict.
#[utoipa::path(
    put,
    path = "/conversations/{conversation_id}",
    operation_id = "create_conversation",
    tag = "Conversations",
    params(("conversation_id" = String, Path, description = "The caller's own name for it, up to 128 bytes")),
    request_body = CreateConversation,
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(()): Query<()>,
    Body(body): Body<CreateConversation>,
) -> Answer<Written> {
    let members = match body.kind {
        Kind::Direct => body.members,
        // A set: the same group whoever is named first or twice.
        Kind::Group => as_set(body.members),
    };
    let (first, others) = first_members(members, &caller);
    let created = ConversationCreated {
        kind: body.kind,
        members: first,
        title: body.title.unwrap_or_default(),
        history: body.history.unwrap_or(History::FromJoin),
    };
    judge::check_creation(&created, &caller)?;
    let id = body.event_id;
    let judge = may_create(&app, &conversation, &created, id, !others.is_empty());
    let is_new = in_time(&app, judge).await?;
    let mut payloads = vec![Payload::ConversationCreated(created)];
    if is_new {
        payloads.extend(chunks(others, added));
    }
    let (event_id, occurred_at) = (id, None);
    let call = Write {
        conversation,
        event_id,
        occurred_at,
        payloads,
    };
    let (id, events) = call.events(&caller)?;
    append(&app, id, events).await
}

/// Judges a creation, and says whether the members beyond the first event's are to be added too.
///
/// They are not where the conversation is there already: some may have been removed since, and the same creation again
/// changes nothing. They are where the caller repeats the very call that made it, whose end may not have reached the
/// log; the dedupe window drops what has. So a large creation is judged by a view that holds the log's end. So is any
/// other that seems to be new, if the view gets there in time: somebody may have been faster, with other content.
async fn may_create(
    app: &App,
    conversation: &ConversationId,
    created: &ConversationCreated,
    id: Option<EventId>,
    has_others: bool,
) -> Answer<bool> {
    let partition = app.partition_of(conversation);
    let view = app.views.roaming.get().await?;
    let is_new = || async {
        let head = room::head(app, &view, conversation).await?.value;
        judge::judge_creation(conversation, created, head.as_deref())?;
        Ok(head.is_none())
    };
    let mut judged = app.judged(&view, partition, is_new).await;
    if let Ok(true) = judged {
        match app.wait_for_end(&view, partition).await {
            Ok(()) => judged = is_new().await,
            Err(behind) if has_others => return Err(behind),
            Err(_) => {}
        }
    }
    let may_be_repeated = match &judged {
        Ok(is_new) => has_others && !is_new,
        Err(problem) => problem.is_refusal(),
    };
    if let Some(id) = id.filter(|_| may_be_repeated)
        && repeated(app, &view, conversation, id).await?.is_some()
    {
        return Ok(true);
    }
    judged
}

/// Change a conversation's title or history setting, from here on
#[utoipa::path(
    patch,
    path = "/conversations/{conversation_id}",
    operation_id = "change_conversation",
    tag = "Conversations",
    params(("conversation_id" = String, Path, description = "The conversation")),
    request_body = ChangeConversation,
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(()): Query<()>,
    Body(body): Body<ChangeConversation>,
) -> Answer<Written> {
    let (title, history) = (body.title, body.history);
    if title.is_none() && history.is_none() {
        return Err(Problem::field(
            "body",
            "changes nothing: give title or history",
        ));
    }
    let payload = Payload::ConversationChanged(ConversationChanged { title, history });
    write(
        &app,
        &caller,
        Write::of(conversation, body.event_id, payload),
    )
    .await
}

/// Add members to a group and remove some
///
/// Joins come before leavings. More than 1,000 of either take several events, all with their place in the log by the
/// answer's position.
#[utoipa::path(
    post,
    path = "/conversations/{conversation_id}/members",
    operation_id = "change_members",
    tag = "Conversations",
    params(("conversation_id" = String, Path, description = "The group")),
    request_body = ChangeMembers,
    responses((status = 202, description = "The log has it", body = AcceptedJson)),
)]
pub(crate) async fn change_members(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(()): Query<()>,
    Body(body): Body<ChangeMembers>,
) -> Answer<Written> {
    let payloads = members_changed(body.add, body.remove, &caller.user);
    if payloads.is_empty() {
        return Err(Problem::field(
            "body",
            "changes nothing: name somebody to add or remove",
        ));
    }
    let (event_id, occurred_at) = (body.event_id, None);
    let call = Write {
        conversation,
        event_id,
        occurred_at,
        payloads,
    };
    write(&app, &caller, call).await
}

/// The events of a change of members. Whoever makes it leaves last: the rest would be refused to one who has left.
fn members_changed(add: Vec<UserId>, remove: Vec<UserId>, caller: &UserId) -> Vec<Payload> {
    let mut remove = as_set(remove);
    if let Some(own) = remove.iter().position(|user| user == caller) {
        let own = remove.remove(own);
        remove.push(own);
    }
    let mut payloads: Vec<Payload> = chunks(as_set(add), added).collect();
    payloads.extend(chunks(remove, |members| {
        Payload::MembersRemoved(MembersRemoved { members })
    }));
    payloads
}

/// Those of a new conversation's members that its first event names, the creator among them, and all others.
fn first_members(mut members: Vec<UserId>, caller: &Caller) -> (Vec<UserId>, Vec<UserId>) {
    let own = members.iter().position(|user| *user == caller.user);
    if let Some(own) = own.filter(|own| *own >= MAX_MEMBERS_PER_EVENT) {
        members.swap(MAX_MEMBERS_PER_EVENT - 1, own);
    }
    let others = members.split_off(members.len().min(MAX_MEMBERS_PER_EVENT));
    (members, others)
}

fn added(members: Vec<UserId>) -> Payload {
    Payload::MembersAdded(MembersAdded { members })
}

/// As many events as so many members take.
fn chunks(
    members: Vec<UserId>,
    event: impl Fn(Vec<UserId>) -> Payload,
) -> impl Iterator<Item = Payload> {
    let chunks: Vec<Vec<UserId>> = members
        .chunks(MAX_MEMBERS_PER_EVENT)
        .map(<[UserId]>::to_vec)
        .collect();
    chunks.into_iter().map(event)
}

fn as_set(users: Vec<UserId>) -> Vec<UserId> {
    users
        .into_iter()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn users(range: std::ops::Range<usize>) -> Vec<UserId> {
        range
            .map(|number| sample::user(&format!("u{number:05}")))
            .collect()
    }

    fn listed(payload: &Payload) -> (&str, &[UserId]) {
        match payload {
            Payload::MembersAdded(added) => ("add", &added.members),
            Payload::MembersRemoved(removed) => ("remove", &removed.members),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_event_names_more_members_than_it_may() {
        let events = members_changed(users(0..2_001), users(3_000..4_000), &sample::user("anna"));
        let shape: Vec<(&str, usize)> = events
            .iter()
            .map(|payload| (listed(payload).0, listed(payload).1.len()))
            .collect();
        assert_eq!(
            shape,
            [
                ("add", 1_000),
                ("add", 1_000),
                ("add", 1),
                ("remove", 1_000)
            ]
        );
    }

    #[test]
    fn who_makes_a_change_leaves_last() {
        let mut leaving = users(0..1_500);
        leaving.insert(3, sample::user("anna"));
        let events = members_changed(vec![], leaving, &sample::user("anna"));
        let last = events.last().map(|payload| listed(payload).1).unwrap();
        assert_eq!(last.last(), Some(&sample::user("anna")));
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn the_creator_is_among_the_first_members_however_many_there_are() {
        let caller = Caller {
            user: sample::user("u02500"),
            is_service: false,
        };
        let (first, others) = first_members(users(0..3_000), &caller);
        assert_eq!((first.len(), others.len()), (1_000, 2_000));
        assert!(first.contains(&caller.user) && !others.contains(&caller.user));
        let all: BTreeSet<UserId> = first.into_iter().chain(others).collect();
        assert_eq!(all, users(0..3_000).into_iter().collect());
        let (first, others) = first_members(users(0..3), &caller);
        assert_eq!((first.len(), others.len()), (3, 0));
    }
}
