//! All sessions of one user, complete: rows, and the heads and blocks of large conversations.
//!
//! A row and a head make one state only where the row was read after the head and is not ahead of it. So where the
//! heads at hand are older than the rows just read, one round does; for those that had to be read, the rows are read
//! once more. A row that is ahead of its head meets a worker between its rows and its head: the head is read again.
//! Rounds are bounded: whatever is not one state by then is shown as it is, and the answer marked stale.

use std::{collections::HashMap, sync::Arc};

use futures::{FutureExt, StreamExt, TryStreamExt, future, stream};
use tidemark_event::{ConversationId, UserId};
use tidemark_fold::sessions::{Block, BlockNo, Session, Sessions, Tally};
use tidemark_store::SessionOf;

use super::session::{self, Listed, SessionsHead};
use crate::{
    app::App,
    problem::{Answer, Problem},
    shared::{Read, Since},
    views::Opened,
};

/// How often rows and heads are read until they are one state.
const ROUNDS: usize = 4;

/// Up to so many blocks are read one by one, shared with others who read about as far; more in one go.
const SHARED_BLOCKS: usize = 8;

/// Blocks that are read in one go, some 256 KiB: what one reader holds of a conversation at a time.
const BLOCKS_AT_ONCE: usize = 64;

/// Conversations that one reader counts at a time.
const COUNTED_AT_ONCE: usize = 16;

/// A user's sessions, removed ones too.
#[derive(Debug)]
pub(crate) struct UserList {
    pub(crate) sessions: Vec<Listed>,
    /// Some could not be read in one state.
    pub(crate) is_stale: bool,
}

type ReadHead = Read<Option<Arc<SessionsHead>>>;

/// Reads the user's sessions. What of large conversations is shared with others was read since `since`; what is
/// unread in them is still to be counted, by [`count`].
///
/// Costs one or two reads of the user's partition, and a read a large conversation unless somebody else made it.
pub(crate) async fn load(
    app: &App,
    view: &Opened<Sessions>,
    user: &UserId,
    since: Since,
) -> Answer<UserList> {
    let mut heads: HashMap<ConversationId, ReadHead> = HashMap::new();
    let mut round = 1;
    loop {
        let began = Since::now();
        let rows = view.sessions_of(user).await?;
        let mut wanted = Vec::new();
        for row in rows.iter().filter(|row| session::needs_head(&row.session)) {
            let conversation = &row.conversation;
            let known = heads.get(conversation).cloned().or_else(|| {
                let key = (view.no(), conversation.clone());
                app.reads.session_heads.peek(&key, since)
            });
            let Some(head) = known else {
                wanted.push((conversation.clone(), since));
                continue;
            };
            if !is_ahead_of(&head, &row.session) {
                wanted.push((conversation.clone(), Since::now()));
            } else if head.ended > began {
                // Somebody else read it meanwhile: it will do once the rows are read again.
                wanted.push((conversation.clone(), since));
            }
            heads.insert(conversation.clone(), head);
        }
        if wanted.is_empty() || round == ROUNDS {
            return Ok(UserList {
                is_stale: !wanted.is_empty(),
                sessions: complete(rows, &heads),
            });
        }
        heads.extend(read_heads(app, view, wanted).await?);
        round += 1;
    }
}

/// Whether a head knows all that a row does.
fn is_ahead_of(head: &ReadHead, row: &Session) -> bool {
    head.value
        .as_ref()
        .is_some_and(|head| head.applied >= row.applied)
}

async fn read_heads(
    app: &App,
    view: &Opened<Sessions>,
    wanted: Vec<(ConversationId, Since)>,
) -> Answer<Vec<(ConversationId, ReadHead)>> {
    let reads = wanted.into_iter().map(|(conversation, since)| {
        let generation = view.generation.clone();
        async move {
            let key = (generation.no(), conversation.clone());
            let name = conversation.clone();
            let read = move || async move { Ok(generation.head(&name).await?.map(Arc::new)) };
            let head = app.reads.session_heads.get(key, since, read).await?;
            Ok::<_, Problem>((conversation, head))
        }
    });
    future::try_join_all(reads).await
}

/// Completes rows by the heads at hand. One of a conversation whose head is not there yet has just been made.
fn complete(rows: Vec<SessionOf>, heads: &HashMap<ConversationId, ReadHead>) -> Vec<Listed> {
    let mut sessions = Vec::with_capacity(rows.len());
    for row in rows {
        let (partition, conversation) = (row.partition, row.conversation);
        if !session::needs_head(&row.session) {
            sessions.push(Listed::fanned_out(partition, conversation, row.session));
            continue;
        }
        let Some(read) = heads.get(&conversation) else {
            continue;
        };
        if let Some(head) = &read.value {
            let head = (Arc::clone(head), read.ended);
            sessions.push(Listed::combined(
                partition,
                conversation,
                &row.session,
                head,
            ));
        }
    }
    sessions
}

/// Counts what is unread in large conversations; small ones are counted already.
pub(crate) async fn count(
    app: &App,
    view: &Opened<Sessions>,
    user: &UserId,
    sessions: Vec<&mut Listed>,
) -> Answer<()> {
    let mut counts = Vec::new();
    for listed in sessions {
        if listed.is_uncounted() {
            counts.push(count_one(app, view, user, listed).boxed());
        }
    }
    stream::iter(counts)
        .buffer_unordered(COUNTED_AT_ONCE)
        .try_collect()
        .await
}

async fn count_one(
    app: &App,
    view: &Opened<Sessions>,
    user: &UserId,
    listed: &mut Listed,
) -> Answer<()> {
    let older = count_older(app, view, user, listed).await?;
    listed.set_counted(user, older);
    Ok(())
}

/// What the blocks before the head's own say.
async fn count_older(
    app: &App,
    view: &Opened<Sessions>,
    user: &UserId,
    listed: &Listed,
) -> Answer<Tally> {
    let mut tally = Tally::default();
    let Some((numbers, since)) = listed.blocks(view.settings().block_seqs) else {
        return Ok(tally);
    };
    if numbers.len() <= SHARED_BLOCKS {
        let blocks = numbers
            .iter()
            .map(|no| shared_block(app, view, &listed.conversation, *no, since));
        for block in future::try_join_all(blocks).await? {
            session::add(&mut tally, listed.tally(user, [&*block]));
        }
        return Ok(tally);
    }
    for numbers in numbers.chunks(BLOCKS_AT_ONCE) {
        let blocks = view
            .blocks(&listed.conversation, numbers.iter().copied())
            .await?;
        if blocks.len() < numbers.len() {
            return Err(lacks_blocks(&listed.conversation));
        }
        session::add(&mut tally, listed.tally(user, &blocks));
    }
    Ok(tally)
}

async fn shared_block(
    app: &App,
    view: &Opened<Sessions>,
    conversation: &ConversationId,
    no: BlockNo,
    since: Since,
) -> Answer<Arc<Block>> {
    let key = (view.no(), conversation.clone(), no.get());
    let (generation, name) = (view.generation.clone(), conversation.clone());
    let read = move || async move {
        let blocks = generation.blocks(&name, [no]).await?;
        Ok(blocks.into_iter().next().map(Arc::new))
    };
    let block = app.reads.blocks.get(key, since, read).await?.value;
    block.ok_or_else(|| lacks_blocks(conversation))
}

/// Blocks are written before the head that leaves them behind.
fn lacks_blocks(conversation: &ConversationId) -> Problem {
    tracing::error!(%conversation, "the store lacks a block of a conversation");
    Problem::internal()
}
