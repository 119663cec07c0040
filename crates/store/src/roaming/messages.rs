//! `roaming_<generation>_messages`: a row a message, in buckets of bounded size.

use std::collections::BTreeMap;

use futures::{FutureExt, stream::BoxStream};
use scylla::SerializeRow;
use tidemark_event::{ConversationId, Seq};
use tidemark_fold::Stored;

use crate::{
    MessageOf, TokenRange, column,
    error::StoreError,
    link::{Job, Link, Readable, Statement},
    message::MessageRow,
    schema::Names,
    timestamp::WriteTimestamp,
    write::{Writable, Written, write_jobs},
};

const INSERT: &str = "INSERT INTO {table} (conversation_id, bucket, seq, applied, event_id, sender, body, \
    content_type, mentions, mention_all, silent, reply_to, edited_at, recalled, occurred_at, logged_at) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
const SELECT_SOME: &str = "SELECT conversation_id, seq, applied, event_id, sender, body, content_type, mentions, \
    mention_all, silent, reply_to, edited_at, recalled, occurred_at, logged_at FROM {table} \
    WHERE conversation_id = ? AND bucket = ? AND seq IN ?";
const SELECT_RANGE: &str = "SELECT conversation_id, seq, applied, event_id, sender, body, content_type, mentions, \
    mention_all, silent, reply_to, edited_at, recalled, occurred_at, logged_at FROM {table} \
    WHERE conversation_id = ? AND bucket = ? AND seq >= ? AND seq <= ?";
const SCAN: &str = "SELECT conversation_id, seq, applied, event_id, sender, body, content_type, mentions, \
    mention_all, silent, reply_to, edited_at, recalled, occurred_at, logged_at FROM {table} \
    WHERE token(conversation_id, bucket) > ? AND token(conversation_id, bucket) <= ?";

/// Which end a read begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The oldest first.
    Ascending,
    /// The newest first.
    Descending,
}

/// The seqs of `from..=to` that a read of at most `limit` of them, from one end on, takes: there are no gaps.
pub(super) fn clip((from, to): (Seq, Seq), limit: usize, order: Order) -> Option<(Seq, Seq)> {
    let from = from.max(Seq::FIRST);
    let reach = u64::try_from(limit).unwrap_or(u64::MAX).checked_sub(1)?;
    let (from, to) = match order {
        Order::Ascending => (from, to.min(Seq::new(from.get().saturating_add(reach)))),
        Order::Descending => (from.max(Seq::new(to.get().saturating_sub(reach))), to),
    };
    (from <= to).then_some((from, to))
}

/// The bucket that a message is in.
pub(super) fn bucket(seq: Seq, bucket_seqs: u64) -> u64 {
    seq.get() / bucket_seqs.max(1)
}

/// The buckets that hold `from..=to`.
pub(super) fn buckets(from: Seq, to: Seq, bucket_seqs: u64) -> impl Iterator<Item = u64> {
    bucket(from, bucket_seqs)..=bucket(to, bucket_seqs)
}

/// The statements of one generation's messages.
#[derive(Debug)]
pub(super) struct Messages {
    insert: Statement,
    select_some: Statement,
    select_range: Statement,
    scan: Statement,
}

impl Messages {
    pub(super) async fn prepare(link: &Link, names: &Names) -> Result<Self, StoreError> {
        let table = names.table("messages");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select_some: link.prepare(&table, SELECT_SOME).await?,
            select_range: link.prepare(&table, SELECT_RANGE).await?.of_messages(),
            scan: link.prepare(&table, SCAN).await?.of_messages(),
        })
    }

    pub(super) fn writes<'a>(
        &'a self,
        link: &'a Link,
        bucket_seqs: u64,
        messages: impl IntoIterator<Item = (&'a ConversationId, &'a Stored)>,
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let mut rows = Vec::new();
        for (conversation, stored) in messages {
            let row = MessageInsert::of(conversation, stored, bucket_seqs).map_err(|bad| {
                let key = format!("{conversation}, seq {}", stored.message.seq);
                StoreError::unwritable(self.insert.table(), key, bad)
            })?;
            rows.push(row);
        }
        Ok(write_jobs(link, &self.insert, rows))
    }

    /// Those of `seqs`, all of one bucket, that are there.
    pub(super) async fn read_some(
        &self,
        link: &Link,
        conversation: &ConversationId,
        bucket: u64,
        seqs: &[Seq],
    ) -> Result<BTreeMap<Seq, Stored>, StoreError> {
        let (bucket, key) = self.bucket(conversation, bucket)?;
        // A seq beyond a bigint is none that a row has.
        let seqs: Vec<i64> = seqs
            .iter()
            .filter_map(|seq| i64::try_from(seq.get()).ok())
            .collect();
        let values = (conversation.as_str(), bucket, seqs);
        let rows: Vec<MessageOf> = link.all(&self.select_some, &values, key).await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.stored.message.seq, row.stored))
            .collect())
    }

    /// The messages of `from..=to` in one bucket.
    pub(super) fn read_range<'a>(
        &'a self,
        link: &'a Link,
        conversation: &'a ConversationId,
        bucket: u64,
        (from, to): (Seq, Seq),
    ) -> Job<'a, Vec<Stored>> {
        async move {
            let (bucket, key) = self.bucket(conversation, bucket)?;
            let bound = |seq: Seq| i64::try_from(seq.get()).unwrap_or(i64::MAX);
            let values = (conversation.as_str(), bucket, bound(from), bound(to));
            let rows: Vec<MessageOf> = link.all(&self.select_range, &values, key).await?;
            Ok(rows.into_iter().map(|row| row.stored).collect())
        }
        .boxed()
    }

    pub(super) fn scan<'a>(
        &'a self,
        link: &'a Link,
        range: TokenRange,
    ) -> BoxStream<'a, Result<MessageOf, StoreError>> {
        link.scan(&self.scan, range.bounds(), range.to_string())
    }

    /// A bucket's number as CQL has it, and its name in errors.
    fn bucket(
        &self,
        conversation: &ConversationId,
        bucket: u64,
    ) -> Result<(i64, String), StoreError> {
        let key = format!("{conversation}, bucket {bucket}");
        match column::bigint("bucket", bucket) {
            Ok(bucket) => Ok((bucket, key)),
            Err(bad) => Err(StoreError::unwritable(self.insert.table(), key, bad)),
        }
    }
}

#[derive(Debug, SerializeRow)]
struct MessageInsert<'r> {
    bucket: i64,
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
    #[scylla(flatten)]
    row: MessageRow<'r>,
}

impl<'r> MessageInsert<'r> {
    fn of(
        conversation: &'r ConversationId,
        stored: &'r Stored,
        bucket_seqs: u64,
    ) -> Result<Self, column::BadColumn> {
        Ok(Self {
            bucket: column::bigint("bucket", bucket(stored.message.seq, bucket_seqs))?,
            timestamp: WriteTimestamp::applied(stored.applied),
            row: MessageRow::of(conversation, stored)?,
        })
    }
}

impl<'r> Writable for MessageInsert<'r> {
    type Partition = (&'r str, i64);

    fn partition(&self) -> Self::Partition {
        (self.row.conversation_id, self.bucket)
    }

    fn bytes(&self) -> usize {
        self.row.bytes()
    }

    fn key(&self) -> String {
        MessageOf::key(&self.row)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_clipped_range_is_as_long_as_asked_and_begins_at_the_right_end(
            from in 0..50_u64,
            to in 0..50_u64,
            limit in 0..60_usize,
        ) {
            let wanted: Vec<u64> = (from.max(1)..=to).collect();
            for order in [Order::Ascending, Order::Descending] {
                let expected: Vec<u64> = match order {
                    Order::Ascending => wanted.iter().copied().take(limit).collect(),
                    Order::Descending => {
                        wanted.iter().copied().skip(wanted.len().saturating_sub(limit)).collect()
                    }
                };
                let clipped = match clip((Seq::new(from), Seq::new(to)), limit, order) {
                    Some((from, to)) => (from.get()..=to.get()).collect(),
                    None => Vec::new(),
                };
                prop_assert_eq!(clipped, expected, "{:?}", order);
            }
        }
    }
}
