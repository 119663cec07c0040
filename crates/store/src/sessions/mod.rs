//! sessions' own tables: a row per (user, conversation), and the blocks behind the numbers.

mod blocks;
mod rows;

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream};
use tidemark_event::{ConversationId, Partition, UserId};
use tidemark_fold::{
    Changes, Supply,
    sessions::{Block, BlockNo, Session, Sessions},
};

use self::{blocks::Blocks, rows::SessionRows};
use crate::{
    Generation, TokenRange,
    error::StoreError,
    layout::{Loaded, StoredView, by_partition},
    link::{Job, Link},
    schema::Names,
    write::Written,
};

pub use self::rows::SessionOf;

/// The statements of one generation of sessions.
#[derive(Debug)]
pub struct SessionsTables {
    sessions: SessionRows,
    blocks: Blocks,
}

impl StoredView for Sessions {
    type Tables = SessionsTables;

    fn prepare<'a>(
        link: &'a Link,
        names: &'a Names,
    ) -> BoxFuture<'a, Result<SessionsTables, StoreError>> {
        async move {
            Ok(SessionsTables {
                sessions: SessionRows::prepare(link, names).await?,
                blocks: Blocks::prepare(link, names).await?,
            })
        }
        .boxed()
    }

    fn row_loads(
        generation: &Generation<Self>,
        partition: Partition,
        keys: Vec<(ConversationId, UserId)>,
    ) -> Vec<Job<'_, Loaded<Self>>> {
        let keys = keys
            .into_iter()
            .map(|(conversation, user)| (user, conversation));
        let load = move |(user, conversations): (UserId, Vec<ConversationId>)| {
            async move {
                let table = &generation.own().sessions;
                let mut found = table
                    .read_some(generation.link(), &user, partition, &conversations)
                    .await?;
                Ok(conversations
                    .into_iter()
                    .map(|conversation| {
                        let row = found.remove(&conversation);
                        (conversation, Supply::Row(user.clone(), row))
                    })
                    .collect())
            }
            .boxed()
        };
        by_partition(keys).into_iter().map(load).collect()
    }

    fn row_writes<'a>(
        generation: &'a Generation<Self>,
        partition: Partition,
        changes: &'a [(ConversationId, Changes<Self>)],
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let rows = changes.iter().flat_map(|(conversation, changes)| {
            let rows = changes.rows.iter();
            rows.map(move |(user, row)| (user, conversation, row))
        });
        let table = &generation.own().sessions;
        table.writes(generation.link(), partition, rows)
    }

    fn piece_loads(
        generation: &Generation<Self>,
        keys: Vec<(ConversationId, BlockNo)>,
    ) -> Vec<Job<'_, Loaded<Self>>> {
        let keys = keys
            .into_iter()
            .map(|(conversation, block)| ((conversation, blocks::group(block)), block));
        let load = |((conversation, group), wanted): ((ConversationId, u64), Vec<BlockNo>)| {
            async move {
                let table = &generation.own().blocks;
                let mut found = table
                    .read_some(generation.link(), &conversation, group, &wanted)
                    .await?;
                Ok(wanted
                    .into_iter()
                    .map(|block| {
                        let piece = found.remove(&block);
                        (conversation.clone(), Supply::Piece(block, piece))
                    })
                    .collect())
            }
            .boxed()
        };
        by_partition(keys).into_iter().map(load).collect()
    }

    fn piece_writes<'a>(
        generation: &'a Generation<Self>,
        changes: &'a [(ConversationId, Changes<Self>)],
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let pieces = changes.iter().flat_map(|(conversation, changes)| {
            let pieces = changes.pieces.iter();
            pieces.map(move |(_, block)| (conversation, block))
        });
        generation.own().blocks.writes(generation.link(), pieces)
    }
}

/// For readers.
impl Generation<Sessions> {
    /// All of a user's sessions, removed and left ones too: one table partition.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sessions_of(&self, user: &UserId) -> Result<Vec<SessionOf>, StoreError> {
        self.own().sessions.read_all(self.link(), user).await
    }

    /// One session. `partition` is the partition of the log that the conversation is in.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn session(
        &self,
        user: &UserId,
        partition: Partition,
        conversation: &ConversationId,
    ) -> Result<Option<Session>, StoreError> {
        let conversations = std::slice::from_ref(conversation);
        let mut found = self
            .own()
            .sessions
            .read_some(self.link(), user, partition, conversations)
            .await?;
        Ok(found.remove(conversation))
    }

    /// Those of these blocks that are there, in order. The newest is not: it is in the head.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn blocks(
        &self,
        conversation: &ConversationId,
        blocks: impl IntoIterator<Item = BlockNo> + Send,
    ) -> Result<Vec<Block>, StoreError> {
        let numbers = blocks.into_iter();
        let keys = by_partition(numbers.map(|block| (blocks::group(block), block)));
        let read = |(group, wanted): (u64, Vec<BlockNo>)| {
            async move {
                let table = &self.own().blocks;
                let found = table
                    .read_some(self.link(), conversation, group, &wanted)
                    .await?;
                Ok(found.into_values().collect::<Vec<Block>>())
            }
            .boxed()
        };
        let jobs = keys.into_iter().map(read).collect();
        let mut found: Vec<Block> = self.link().run(jobs).await?.into_iter().flatten().collect();
        found.sort_unstable_by_key(|block| block.no);
        Ok(found)
    }

    /// Every session in these ranges of tokens, a page in memory at a time.
    pub fn scan_sessions(
        &self,
        ranges: impl IntoIterator<Item = TokenRange>,
    ) -> impl Stream<Item = Result<SessionOf, StoreError>> + Send {
        let ranges: Vec<TokenRange> = ranges.into_iter().collect();
        stream::iter(ranges).flat_map(|range| self.own().sessions.scan(self.link(), range))
    }
}
