//! Reads what the store holds of some partitions of the log: whole tables, in the order that [`Shelves`] promises.
//!
//! No table but two knows the log's partitions, so a pass reads all of each table and keeps the rows of its own
//! partitions. A table is read in ranges of tokens, several beside each other; a range that fails for the moment is
//! read again from its beginning.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::{NonZeroU16, NonZeroU32},
    pin::pin,
    time::{Duration, SystemTime},
};

use backon::{ExponentialBuilder, Retryable};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tidemark_event::{ConversationId, Partition, partition_of};
use tidemark_fold::{
    Head, Need, PieceNo, Supply,
    inbox::{Inbox, InboxKey, InboxRow},
    roaming::Roaming,
    sessions::{BlockNo, Sessions},
};
use tidemark_store::{
    CopyOf, Generation, MemberOf, MessageOf, PlaceOf, SessionOf, StoreError, StoredView, TokenRange,
};

use crate::{Misplaced, Scope, Seen, Shelf, Shelves, progress::Meter, view::AuditedView};

/// Ranges that a table is read in.
const RANGES: NonZeroU32 = const { NonZeroU32::new(64).unwrap() };

/// How many of them beside each other: more than a server answers at once gains nothing.
const RANGES_AT_ONCE: usize = 8;

/// Pieces of state that are asked for together.
const PIECES_AT_ONCE: usize = 1_000;

/// Conversations whose pieces are asked for beside each other.
const CONVERSATIONS_AT_ONCE: usize = 16;

/// How often something is tried that fails for the moment.
const ATTEMPTS: usize = 6;

/// The generations that are audited.
#[derive(Debug, Clone, Default)]
pub(crate) struct Generations {
    pub(crate) roaming: Option<Generation<Roaming>>,
    pub(crate) sessions: Option<Generation<Sessions>>,
    pub(crate) inbox: Option<Generation<Inbox>>,
}

/// One reading of the store.
pub(crate) struct Pass<'p> {
    /// Whose rows are kept.
    pub(crate) partitions: &'p BTreeSet<Partition>,
    /// How many partitions the log has.
    pub(crate) partition_count: NonZeroU16,
    pub(crate) scope: &'p Scope,
    pub(crate) meter: &'p Meter,
}

/// One view's shelves.
type ByPartition<V> = BTreeMap<Partition, Shelf<V>>;

/// What is of one conversation.
trait InConversation {
    fn conversation(&self) -> &ConversationId;
}

/// Reads everything.
pub(crate) async fn read(
    generations: &Generations,
    pass: &Pass<'_>,
) -> Result<BTreeMap<Partition, Shelves>, StoreError> {
    let mut roaming = match &generations.roaming {
        Some(generation) => Some((generation, pass.begin(generation).await?)),
        None => None,
    };
    let mut sessions = match &generations.sessions {
        Some(generation) => Some((generation, pass.begin(generation).await?)),
        None => None,
    };
    let mut inbox = match &generations.inbox {
        Some(generation) => Some((generation, pass.begin(generation).await?)),
        None => None,
    };

    if let Some((generation, shelves)) = &mut sessions {
        pass.read_sessions(generation, shelves).await?;
    }

    if let Some((generation, shelves)) = &mut roaming {
        pass.read_heads(generation, shelves).await?;
    }
    if let Some((generation, shelves)) = &mut sessions {
        pass.read_heads(generation, shelves).await?;
    }
    if let Some((generation, shelves)) = &mut inbox {
        pass.read_heads(generation, shelves).await?;
    }

    if let Some((generation, shelves)) = &mut roaming {
        pass.read_members(generation, shelves).await?;
    }
    if let Some((generation, shelves)) = &mut sessions {
        pass.read_members(generation, shelves).await?;
    }
    let mut seen = Seen::default();
    if let Some((generation, shelves)) = &mut inbox {
        pass.read_members(generation, shelves).await?;
        pass.read_places(generation, shelves).await?;
        seen.from = now();
        pass.read_copies(generation, shelves).await?;
        seen.to = now();
    }
    if let Some((generation, shelves)) = &mut roaming {
        pass.read_messages(generation, shelves).await?;
    }

    if let Some((generation, shelves)) = &mut roaming {
        pass.read_ids(generation, shelves).await?;
    }
    if let Some((generation, shelves)) = &mut sessions {
        pass.read_ids(generation, shelves).await?;
        pass.read_blocks(generation, shelves).await?;
    }
    if let Some((generation, shelves)) = &mut inbox {
        pass.read_ids(generation, shelves).await?;
    }

    let mut roaming = roaming.map(|(_, shelves)| shelves);
    let mut sessions = sessions.map(|(_, shelves)| shelves);
    let mut inbox = inbox.map(|(_, shelves)| shelves);
    let together = |partition: &Partition| {
        let shelves = Shelves {
            roaming: roaming.as_mut().and_then(|them| them.remove(partition)),
            sessions: sessions.as_mut().and_then(|them| them.remove(partition)),
            inbox: inbox.as_mut().and_then(|them| them.remove(partition)),
            seen,
        };
        (*partition, shelves)
    };
    Ok(pass.partitions.iter().map(together).collect())
}

impl Pass<'_> {
    /// Empty shelves but for the checkpoints.
    async fn begin<V: StoredView>(
        &self,
        generation: &Generation<V>,
    ) -> Result<ByPartition<V>, StoreError> {
        let checkpoints = retried(|| generation.checkpoints()).await?;
        let shelf = |partition: &Partition| {
            let mut shelf = Shelf::empty(generation.no().get(), *generation.settings());
            shelf.checkpoint = checkpoints.get(partition).copied();
            (*partition, shelf)
        };
        Ok(self.partitions.iter().map(shelf).collect())
    }

    async fn read_heads<V: StoredView>(
        &self,
        generation: &Generation<V>,
        shelves: &mut ByPartition<V>,
    ) -> Result<(), StoreError> {
        let read = |range| generation.scan_heads([range]);
        self.scan(shelves, read, |shelf, _, (conversation, head)| {
            shelf.conversation(conversation).head = Some(head);
        })
        .await
    }

    async fn read_members<V: StoredView>(
        &self,
        generation: &Generation<V>,
        shelves: &mut ByPartition<V>,
    ) -> Result<(), StoreError> {
        let read = |range| generation.scan_members([range]);
        self.scan(shelves, read, |shelf, _, row: MemberOf| {
            let members = &mut shelf.conversation(row.conversation).members;
            members.insert(row.user, row.member);
        })
        .await
    }

    async fn read_sessions(
        &self,
        generation: &Generation<Sessions>,
        shelves: &mut ByPartition<Sessions>,
    ) -> Result<(), StoreError> {
        let read = |range| generation.scan_sessions([range]);
        self.scan(shelves, read, |shelf, partition, row: SessionOf| {
            if row.partition != partition {
                shelf.misplaced.push(Misplaced {
                    key: Sessions::row_name(&row.user),
                    conversation: row.conversation,
                    applied: row.session.applied,
                    wanted: format!("log partition {partition}"),
                    found: row.partition.to_string(),
                });
                return;
            }
            let rows = &mut shelf.conversation(row.conversation).rows;
            rows.insert(row.user, row.session);
        })
        .await
    }

    async fn read_messages(
        &self,
        generation: &Generation<Roaming>,
        shelves: &mut ByPartition<Roaming>,
    ) -> Result<(), StoreError> {
        let read = |range| generation.scan_messages([range]);
        self.scan(shelves, read, |shelf, _, row: MessageOf| {
            let (seq, applied) = (row.stored.message.seq, row.stored.applied);
            let rows = &mut shelf.conversation(row.conversation.clone()).rows;
            if rows.insert(seq, row.stored).is_some() {
                shelf.misplaced.push(Misplaced {
                    conversation: row.conversation,
                    key: Roaming::row_name(&seq),
                    applied,
                    wanted: "one row, in one bucket".to_owned(),
                    found: "two".to_owned(),
                });
            }
        })
        .await
    }

    async fn read_places(
        &self,
        generation: &Generation<Inbox>,
        shelves: &mut ByPartition<Inbox>,
    ) -> Result<(), StoreError> {
        let read = |range| generation.scan_places([range]);
        self.scan(shelves, read, |shelf, partition, row: PlaceOf| {
            let key = InboxKey::Place { user: row.user };
            if row.partition != partition {
                shelf.misplaced.push(Misplaced {
                    key: Inbox::row_name(&key),
                    conversation: row.conversation,
                    applied: row.place.applied,
                    wanted: format!("log partition {partition}"),
                    found: row.partition.to_string(),
                });
                return;
            }
            let rows = &mut shelf.conversation(row.conversation).rows;
            rows.insert(key, InboxRow::Place(row.place));
        })
        .await
    }

    async fn read_copies(
        &self,
        generation: &Generation<Inbox>,
        shelves: &mut ByPartition<Inbox>,
    ) -> Result<(), StoreError> {
        let read = |range| generation.scan_copies([range]);
        self.scan(shelves, read, |shelf, _, row: CopyOf| {
            let key = InboxKey::Copy {
                user: row.user,
                period: row.period,
                seq: row.stored.message.seq,
            };
            let rows = &mut shelf.conversation(row.conversation).rows;
            rows.insert(key, InboxRow::Copy(row.stored));
        })
        .await
    }

    /// Reads the dedupe pieces that heads call live.
    async fn read_ids<V: StoredView>(
        &self,
        generation: &Generation<V>,
        shelves: &mut ByPartition<V>,
    ) -> Result<(), StoreError> {
        if self.scope.user.is_some() {
            return Ok(());
        }
        for (partition, shelf) in shelves {
            let mut needs = Vec::new();
            for (conversation, stored) in &mut shelf.conversations {
                for no in stored.head.iter().flat_map(live_pieces) {
                    stored.ids.insert(no, Vec::new());
                    needs.push((conversation.clone(), Need::Dedupe(no)));
                }
            }
            for needs in needs.chunks(PIECES_AT_ONCE) {
                let loaded = retried(|| generation.load(*partition, needs.to_vec())).await?;
                for (conversation, supply) in loaded {
                    if let Supply::Dedupe(no, ids) = supply {
                        self.meter.add_stored(ids.len() as u64);
                        shelf.conversation(conversation).ids.insert(no, ids);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the blocks before each head's own.
    async fn read_blocks(
        &self,
        generation: &Generation<Sessions>,
        shelves: &mut ByPartition<Sessions>,
    ) -> Result<(), StoreError> {
        if self.scope.user.is_some() {
            return Ok(());
        }
        let block_seqs = generation.settings().block_seqs;
        for shelf in shelves.values_mut() {
            let with_blocks = shelf.conversations.iter().filter_map(|(id, stored)| {
                let head = stored.head.as_ref()?;
                // Whatever a head says, there are no more than its last seq allows.
                let newest = head.extra.block.no;
                let end = newest.min(BlockNo::of(head.last_seq, block_seqs)).get();
                (end > 0).then(|| (id.clone(), end))
            });
            let with_blocks: Vec<(ConversationId, u64)> = with_blocks.collect();
            let reads = stream::iter(with_blocks).map(|(id, end)| async move {
                let blocks = retried(|| generation.blocks(&id, (0..end).map(BlockNo::new))).await?;
                Ok::<_, StoreError>((id, blocks))
            });
            let mut reads = reads.buffer_unordered(CONVERSATIONS_AT_ONCE);
            while let Some((id, blocks)) = reads.try_next().await? {
                self.meter.add_stored(blocks.len() as u64);
                let pieces = blocks.into_iter().map(|block| (block.no, block));
                shelf.conversation(id).pieces.extend(pieces);
            }
        }
        Ok(())
    }

    /// Reads a whole table and gives each row that is kept to the shelf of its conversation.
    async fn scan<V, T, S>(
        &self,
        shelves: &mut ByPartition<V>,
        read: impl Fn(TokenRange) -> S,
        mut put: impl FnMut(&mut Shelf<V>, Partition, T),
    ) -> Result<(), StoreError>
    where
        V: StoredView,
        T: InConversation,
        S: Stream<Item = Result<T, StoreError>>,
    {
        let read = &read;
        let ranges = stream::iter(TokenRange::split(RANGES));
        let mut ranges = ranges
            .map(|range| retried(move || self.keep(read(range))))
            .buffer_unordered(RANGES_AT_ONCE);
        while let Some(rows) = ranges.try_next().await? {
            for (partition, row) in rows {
                if let Some(shelf) = shelves.get_mut(&partition) {
                    put(shelf, partition, row);
                }
            }
        }
        Ok(())
    }

    /// Of the rows that come, those of the pass's conversations, with their partitions.
    async fn keep<T: InConversation>(
        &self,
        rows: impl Stream<Item = Result<T, StoreError>>,
    ) -> Result<Vec<(Partition, T)>, StoreError> {
        let mut kept = Vec::new();
        let mut read = 0;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await? {
            read += 1;
            let conversation = row.conversation();
            let partition = partition_of(conversation, self.partition_count);
            if self.partitions.contains(&partition) && self.scope.admits_conversation(conversation)
            {
                kept.push((partition, row));
            }
        }
        self.meter.add_stored(read);
        Ok(kept)
    }
}

fn live_pieces<Extra>(head: &Head<Extra>) -> impl Iterator<Item = PieceNo> {
    head.dedupe.live.iter().map(|span| span.no)
}

/// Tries a few times what fails for the moment.
async fn retried<T, F>(attempt: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let pauses = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(5))
        .with_max_times(ATTEMPTS - 1)
        .with_jitter();
    attempt.retry(pauses).when(StoreError::is_transient).await
}

/// Milliseconds since 1970 UTC, by this machine's clock: only to know which copies may have expired.
fn now() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}

impl<Extra> InConversation for (ConversationId, Head<Extra>) {
    fn conversation(&self) -> &ConversationId {
        &self.0
    }
}

impl InConversation for MemberOf {
    fn conversation(&self) -> &ConversationId {
        &self.conversation
    }
}

impl InConversation for SessionOf {
    fn conversation(&self) -> &ConversationId {
        &self.conversation
    }
}

impl InConversation for MessageOf {
    fn conversation(&self) -> &ConversationId {
        &self.conversation
    }
}

impl InConversation for PlaceOf {
    fn conversation(&self) -> &ConversationId {
        &self.conversation
    }
}

impl InConversation for CopyOf {
    fn conversation(&self) -> &ConversationId {
        &self.conversation
    }
}
