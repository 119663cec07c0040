//! Who belongs to a conversation.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use tidemark_event::{Seq, UserId};
use tidemark_fold::{Member, roaming::Roaming};
use utoipa::ToSchema;

use super::{Paging, PlainList};
use crate::{
    app::{App, Page},
    cursor::CursorOf,
    judge,
    problem::Answer,
    request::{Caller, InConversation, Query},
    room,
    views::Opened,
};

/// A member of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Member)]
pub(crate) struct MemberJson {
    /// Who.
    #[schema(value_type = String)]
    user_id: UserId,
    /// The first seq of the membership: the last one at joining, and one more.
    #[schema(value_type = u64)]
    since: Seq,
}

/// A page of members.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Members)]
pub(crate) struct MembersJson {
    /// By user id.
    members: Vec<MemberJson>,
    /// Where the list goes on; null at its end.
    next_cursor: Option<String>,
}

/// A conversation's members
///
/// For members: who has left may read up to where they left, and the members of now are not that.
#[utoipa::path(
    get,
    path = "/conversations/{conversation_id}/members",
    operation_id = "list_members",
    tag = "Conversations",
    params(
        ("conversation_id" = String, Path, description = "The conversation"),
        ("limit" = Option<usize>, Query, description = "How many at most: 100 if absent, up to 1,000"),
        ("cursor" = Option<String>, Query, description = "The next_cursor of the page before"),
    ),
    responses((status = 200, description = "A page of them", body = MembersJson)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(PlainList(Paging { limit, cursor, at })): Query<PlainList>,
) -> Answer<Page<MembersJson>> {
    let cursors = app.cursors(CursorOf::Members, &caller, conversation.as_str());
    let after: Option<UserId> = match cursor {
        Some(text) => Some(cursors.read(&text)?),
        None => None,
    };
    let view = app.views.roaming.get().await?;
    let basis = app.reach(&view, &at).await?;
    let partition = app.partition_of(&conversation);
    app.judged(&view, partition, || {
        is_member(&app, &view, &conversation, &caller)
    })
    .await?;
    // One more than asked for tells whether there is a next page.
    let mut found = view
        .members_page(&conversation, after.as_ref(), limit + 1)
        .await?;
    let is_more = found.len() > limit;
    found.truncate(limit);
    let next = found
        .last()
        .filter(|_| is_more)
        .map(|(user, _)| cursors.write(user));
    let members = found.into_iter().filter_map(|(user_id, member)| {
        let since = member.since()?;
        Some(MemberJson { user_id, since })
    });
    Ok(Page {
        body: MembersJson {
            members: members.collect(),
            next_cursor: next,
        },
        is_stale: basis.is_stale,
    })
}

async fn is_member(
    app: &App,
    view: &Opened<Roaming>,
    conversation: &tidemark_event::ConversationId,
    caller: &Caller,
) -> Answer<()> {
    let (room, _) = room::enter(app, view, conversation, caller).await?;
    if judge::may_read(conversation, caller, &room).is_ok_and(Member::is_present) {
        Ok(())
    } else {
        Err(judge::not_a_member(conversation, caller))
    }
}
