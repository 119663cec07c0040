//! roaming's own tables: the permanent record, and what was refused.

mod messages;
mod refusals;

use futures::{FutureExt, Stream, StreamExt, future::BoxFuture, stream};
use tidemark_event::{ConversationId, EventId, Partition, Seq};
use tidemark_fold::{Changes, Never, Stored, Supply, roaming::Roaming};

use self::{messages::Messages, refusals::Refusals};
use crate::{
    Generation, MessageOf, TokenRange,
    error::StoreError,
    layout::{Loaded, StoredView, by_partition},
    link::{Job, Link},
    schema::Names,
    write::Written,
};

pub use self::{messages::Order, refusals::Refusal};

/// The statements of one generation of roaming.
#[derive(Debug)]
pub struct RoamingTables {
    messages: Messages,
    refusals: Refusals,
}

impl StoredView for Roaming {
    type Tables = RoamingTables;

    fn prepare<'a>(
        link: &'a Link,
        names: &'a Names,
    ) -> BoxFuture<'a, Result<RoamingTables, StoreError>> {
        async move {
            Ok(RoamingTables {
                messages: Messages::prepare(link, names).await?,
                refusals: Refusals::prepare(link, names).await?,
            })
        }
        .boxed()
    }

    fn row_loads(
        generation: &Generation<Self>,
        _: Partition,
        keys: Vec<(ConversationId, Seq)>,
    ) -> Vec<Job<'_, Loaded<Self>>> {
        let bucket_seqs = generation.settings().bucket_seqs;
        let keys = keys
            .into_iter()
            .map(|(conversation, seq)| ((conversation, messages::bucket(seq, bucket_seqs)), seq));
        let load = |((conversation, bucket), seqs): ((ConversationId, u64), Vec<Seq>)| {
            async move {
                let table = &generation.own().messages;
                let mut found = table
                    .read_some(generation.link(), &conversation, bucket, &seqs)
                    .await?;
                Ok(seqs
                    .into_iter()
                    .map(|seq| {
                        let row = found.remove(&seq);
                        (conversation.clone(), Supply::Row(seq, row))
                    })
                    .collect())
            }
            .boxed()
        };
        by_partition(keys).into_iter().map(load).collect()
    }

    fn row_writes<'a>(
        generation: &'a Generation<Self>,
        _: Partition,
        changes: &'a [(ConversationId, Changes<Self>)],
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let rows = changes.iter().flat_map(|(conversation, changes)| {
            let rows = changes.rows.iter();
            rows.map(move |(_, row)| (conversation, row))
        });
        let bucket_seqs = generation.settings().bucket_seqs;
        generation
            .own()
            .messages
            .writes(generation.link(), bucket_seqs, rows)
    }

    fn piece_loads(
        _: &Generation<Self>,
        _: Vec<(ConversationId, Never)>,
    ) -> Vec<Job<'_, Loaded<Self>>> {
        Vec::new()
    }

    fn piece_writes<'a>(
        _: &'a Generation<Self>,
        _: &'a [(ConversationId, Changes<Self>)],
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        Ok(Vec::new())
    }
}

/// For the projector.
impl Generation<Roaming> {
    /// Writes refusals, so that their senders can be told. They expire after twice the dedupe window and decide
    /// nothing, so a step that lost one has done no harm.
    ///
    /// # Errors
    /// [`StoreError`]: some may have been written. To write all again changes nothing in those.
    pub async fn write_refusals(&self, refusals: &[Refusal]) -> Result<Written, StoreError> {
        let window = self.log_settings().dedupe;
        let jobs = self.own().refusals.writes(self.link(), window, refusals)?;
        self.write(jobs).await
    }
}

/// For readers.
impl Generation<Roaming> {
    /// At most `limit` messages of `from..=to`, from the end that `order` begins with. Since seqs have no gaps, only
    /// the buckets that hold these are read, beside each other: where `to` is beyond the conversation's last seq, a
    /// descending read gives fewer.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn messages(
        &self,
        conversation: &ConversationId,
        (from, to): (Seq, Seq),
        limit: usize,
        order: Order,
    ) -> Result<Vec<Stored>, StoreError> {
        let Some((from, to)) = messages::clip((from, to), limit, order) else {
            return Ok(Vec::new());
        };
        let bucket_seqs = self.settings().bucket_seqs;
        let messages = &self.own().messages;
        let jobs = messages::buckets(from, to, bucket_seqs)
            .map(|bucket| messages.read_range(self.link(), conversation, bucket, (from, to)))
            .collect();
        let mut rows: Vec<Stored> = self.link().run(jobs).await?.into_iter().flatten().collect();
        rows.sort_unstable_by_key(|row| row.message.seq);
        if order == Order::Descending {
            rows.reverse();
        }
        Ok(rows)
    }

    /// Every refusal of an event id in a conversation that is still kept, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn refusals(
        &self,
        conversation: &ConversationId,
        id: EventId,
    ) -> Result<Vec<Refusal>, StoreError> {
        self.own()
            .refusals
            .read(self.link(), conversation, id)
            .await
    }

    /// Every message in these ranges of tokens, a page in memory at a time.
    pub fn scan_messages(
        &self,
        ranges: impl IntoIterator<Item = TokenRange>,
    ) -> impl Stream<Item = Result<MessageOf, StoreError>> + Send {
        let ranges: Vec<TokenRange> = ranges.into_iter().collect();
        stream::iter(ranges).flat_map(|range| self.own().messages.scan(self.link(), range))
    }
}
