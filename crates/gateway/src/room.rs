//! Reads what roaming holds of a conversation and of one user's place in it.
//!
//! The head first, then the member: so a member row is never older than the head, and who was removed before the
//! head's newest message is known to be. One that is newer only knows of memberships beyond the head's last seq, and
//! every answer is clipped to that. Messages are read last: they are written before the head, so none at or below its
//! last seq is missing, and what is newer in one than the head knows of, an edit or a recall, is only seen early.

use std::sync::Arc;

use tidemark_event::{ConversationId, Seq};
use tidemark_fold::{Head, Message, roaming::Roaming};
use tidemark_store::Order;

use crate::{
    app::App,
    judge::{self, Room},
    problem::{Answer, Problem},
    request::Caller,
    shared::{Read, Since},
    views::Opened,
};

/// A conversation's head in roaming, as of now, shared with whoever asks at the same moment.
pub(crate) async fn head(
    app: &App,
    view: &Opened<Roaming>,
    conversation: &ConversationId,
) -> Answer<Read<Option<Arc<Head<()>>>>> {
    let key = (view.no(), conversation.clone());
    let (generation, name) = (view.generation.clone(), conversation.clone());
    let read = move || async move { Ok(generation.head(&name).await?.map(Arc::new)) };
    Ok(app.reads.roaming_heads.get(key, Since::now(), read).await?)
}

/// A conversation and the caller's place in it, and when the head had been read.
///
/// # Errors
/// There is no such conversation, as far as roaming knows.
pub(crate) async fn enter(
    app: &App,
    view: &Opened<Roaming>,
    conversation: &ConversationId,
    caller: &Caller,
) -> Answer<(Room, Since)> {
    let Read { ended, value } = head(app, view, conversation).await?;
    let Some(head) = value else {
        return Err(judge::no_such_conversation(conversation));
    };
    let member = view.member(conversation, &caller.user).await?;
    Ok((Room { head, member }, ended))
}

/// One message at or below the last seq of a head that was read.
pub(crate) async fn message(
    view: &Opened<Roaming>,
    conversation: &ConversationId,
    seq: Seq,
) -> Answer<Message> {
    let mut found = view
        .messages(conversation, (seq, seq), 1, Order::Ascending)
        .await?;
    match found.pop() {
        Some(stored) => Ok(stored.message),
        None => Err(lacks_message(conversation, seq)),
    }
}

/// Messages are written before the head that counts them.
pub(crate) fn lacks_message(conversation: &ConversationId, seq: Seq) -> Problem {
    tracing::error!(%conversation, %seq, "the store lacks a message of a conversation");
    Problem::internal()
}
