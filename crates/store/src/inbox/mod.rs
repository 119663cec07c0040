//! inbox's own tables: copies of messages, and each user's place in a conversation.

mod copies;
mod places;

use futures::{FutureExt, Stream, StreamExt, future, future::BoxFuture, stream};
use tidemark_event::{ConversationId, Partition, Seq, UserId};
use tidemark_fold::{
    Changes, Never, Stored, Supply,
    inbox::{Inbox, InboxKey, InboxRow, Period, Place},
};

use self::{copies::Copies, places::Places};
use crate::{
    Generation, MessageOf, TokenRange,
    column::BadColumn,
    error::StoreError,
    layout::{Loaded, StoredView, by_partition},
    link::{Job, Link},
    schema::Names,
    store::now,
    write::Written,
};

pub use self::{copies::CopyOf, places::PlaceOf};

/// The statements of one generation of inbox.
#[derive(Debug)]
pub struct InboxTables {
    copies: Copies,
    places: Places,
}

impl StoredView for Inbox {
    type Tables = InboxTables;

    fn prepare<'a>(
        link: &'a Link,
        names: &'a Names,
    ) -> BoxFuture<'a, Result<InboxTables, StoreError>> {
        async move {
            Ok(InboxTables {
                copies: Copies::prepare(link, names).await?,
                places: Places::prepare(link, names).await?,
            })
        }
        .boxed()
    }

    fn row_loads(
        generation: &Generation<Self>,
        partition: Partition,
        keys: Vec<(ConversationId, InboxKey)>,
    ) -> Vec<Job<'_, Loaded<Self>>> {
        let mut places = Vec::new();
        let mut copies = Vec::new();
        for (conversation, key) in keys {
            match key {
                InboxKey::Place { user } => places.push((user, conversation)),
                InboxKey::Copy { user, period, seq } => {
                    copies.push(((user, period, conversation), seq));
                }
            }
        }
        let mut loads = generation.place_loads(partition, places);
        loads.extend(generation.copy_loads(copies));
        loads
    }

    fn row_writes<'a>(
        generation: &'a Generation<Self>,
        partition: Partition,
        changes: &'a [(ConversationId, Changes<Self>)],
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let mut places = Vec::new();
        let mut copies = Vec::new();
        for (conversation, changes) in changes {
            for (key, row) in &changes.rows {
                match (key, row) {
                    (InboxKey::Copy { user, period, .. }, InboxRow::Copy(copy)) => {
                        copies.push(((user, *period), conversation, copy));
                    }
                    (InboxKey::Place { user }, InboxRow::Place(place)) => {
                        places.push((user, conversation, place));
                    }
                    (InboxKey::Copy { .. }, InboxRow::Place(_))
                    | (InboxKey::Place { .. }, InboxRow::Copy(_)) => {
                        let key = format!("{conversation}, {key:?}");
                        let bad = BadColumn::new("applied", "is of a row of another kind");
                        return Err(StoreError::unwritable("inbox", key, bad));
                    }
                }
            }
        }
        let (link, own) = (generation.link(), generation.own());
        let settings = generation.settings();
        let (mut jobs, expired) = own.copies.writes(link, settings, now(), copies)?;
        jobs.extend(own.places.writes(link, partition, places)?);
        if expired > 0 {
            let left_out = Written {
                expired,
                ..Written::default()
            };
            jobs.push(future::ready(Ok(left_out)).boxed());
        }
        Ok(jobs)
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

impl Generation<Inbox> {
    fn place_loads(
        &self,
        partition: Partition,
        keys: Vec<(UserId, ConversationId)>,
    ) -> Vec<Job<'_, Loaded<Inbox>>> {
        let load = |(user, conversations): (UserId, Vec<ConversationId>)| {
            async move {
                let table = &self.own().places;
                let mut found = table
                    .read_some(self.link(), &user, partition, &conversations)
                    .await?;
                Ok(conversations
                    .into_iter()
                    .map(|conversation| {
                        let row = found.remove(&conversation).map(InboxRow::Place);
                        let key = InboxKey::Place { user: user.clone() };
                        (conversation, Supply::Row(key, row))
                    })
                    .collect())
            }
            .boxed()
        };
        by_partition(keys).into_iter().map(load).collect()
    }

    fn copy_loads(
        &self,
        keys: Vec<((UserId, Period, ConversationId), Seq)>,
    ) -> Vec<Job<'_, Loaded<Inbox>>> {
        let load = |((user, period, conversation), seqs): ((UserId, Period, ConversationId), _)| {
            async move {
                let seqs: Vec<Seq> = seqs;
                let table = &self.own().copies;
                let mut found = table
                    .read_some(self.link(), (&user, period), &conversation, &seqs)
                    .await?;
                Ok(seqs
                    .into_iter()
                    .map(|seq| {
                        let row = found.remove(&seq).map(InboxRow::Copy);
                        let user = user.clone();
                        let key = InboxKey::Copy { user, period, seq };
                        (conversation.clone(), Supply::Row(key, row))
                    })
                    .collect())
            }
            .boxed()
        };
        by_partition(keys).into_iter().map(load).collect()
    }
}

/// For readers.
impl Generation<Inbox> {
    /// All of a user's places: one table partition.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn places_of(&self, user: &UserId) -> Result<Vec<PlaceOf>, StoreError> {
        self.own().places.read_all(self.link(), user).await
    }

    /// A user's place in a conversation. `partition` is the partition of the log that the conversation is in.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn place(
        &self,
        user: &UserId,
        partition: Partition,
        conversation: &ConversationId,
    ) -> Result<Option<Place>, StoreError> {
        let conversations = std::slice::from_ref(conversation);
        let mut found = self
            .own()
            .places
            .read_some(self.link(), user, partition, conversations)
            .await?;
        Ok(found.remove(conversation))
    }

    /// At most `limit` of the copies that a user has of `from..=to` of a conversation, of one period, ascending. What
    /// has expired is not there.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn copies(
        &self,
        user: &UserId,
        period: Period,
        conversation: &ConversationId,
        (from, to): (Seq, Seq),
        limit: usize,
    ) -> Result<Vec<Stored>, StoreError> {
        let copies = &self.own().copies;
        copies
            .read_range(self.link(), (user, period), conversation, (from, to), limit)
            .await
    }

    /// At most `limit` of all copies that a user has of one period, by conversation and seq, beginning after `after`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn copies_of(
        &self,
        user: &UserId,
        period: Period,
        after: Option<(&ConversationId, Seq)>,
        limit: usize,
    ) -> Result<Vec<MessageOf>, StoreError> {
        let copies = &self.own().copies;
        copies
            .read_after(self.link(), (user, period), after, limit)
            .await
    }

    /// Every copy in these ranges of tokens, a page in memory at a time.
    pub fn scan_copies(
        &self,
        ranges: impl IntoIterator<Item = TokenRange>,
    ) -> impl Stream<Item = Result<CopyOf, StoreError>> + Send {
        let ranges: Vec<TokenRange> = ranges.into_iter().collect();
        stream::iter(ranges).flat_map(|range| self.own().copies.scan(self.link(), range))
    }

    /// Every place in these ranges of tokens, a page in memory at a time.
    pub fn scan_places(
        &self,
        ranges: impl IntoIterator<Item = TokenRange>,
    ) -> impl Stream<Item = Result<PlaceOf, StoreError>> + Send {
        let ranges: Vec<TokenRange> = ranges.into_iter().collect();
        stream::iter(ranges).flat_map(|range| self.own().places.scan(self.link(), range))
    }
}
