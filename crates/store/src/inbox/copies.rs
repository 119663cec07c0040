//! `inbox_<generation>_copies`: messages copied into members' inboxes, which expire by period.
//!
//! The time to live is reckoned here, at the store's edge, as the seconds from now until the period's copies expire;
//! a copy past that is not written, since a time to live of 0 would keep it for ever. A copy is written whole each time,
//! so all its cells expire together.

use std::collections::BTreeMap;

use futures::stream::BoxStream;
use scylla::{
    SerializeRow,
    deserialize::{
        DeserializationError, TypeCheckError,
        row::{ColumnIterator, DeserializeRow},
        value::DeserializeValue,
    },
    frame::response::result::ColumnSpec,
};
use tidemark_event::{ConversationId, Seq, UserId};
use tidemark_fold::{GenerationSettings, Stored, inbox::Period};

use crate::{
    MessageOf, TokenRange,
    column::{self, BadColumn},
    error::StoreError,
    link::{Job, Link, Readable, Statement},
    message::MessageRow,
    schema::Names,
    timestamp::WriteTimestamp,
    ttl::TimeToLive,
    write::{Writable, Written, write_jobs},
};

const INSERT: &str = "INSERT INTO {table} (user_id, period, conversation_id, seq, applied, event_id, sender, body, \
    content_type, mentions, mention_all, silent, reply_to, edited_at, recalled, occurred_at, logged_at) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
const SELECT_SOME: &str = "SELECT conversation_id, seq, applied, event_id, sender, body, content_type, mentions, \
    mention_all, silent, reply_to, edited_at, recalled, occurred_at, logged_at FROM {table} \
    WHERE user_id = ? AND period = ? AND conversation_id = ? AND seq IN ?";
const SELECT_RANGE: &str = "SELECT conversation_id, seq, applied, event_id, sender, body, content_type, mentions, \
    mention_all, silent, reply_to, edited_at, recalled, occurred_at, logged_at FROM {table} \
    WHERE user_id = ? AND period = ? AND conversation_id = ? AND seq >= ? AND seq <= ? LIMIT ?";
const SELECT_AFTER: &str = "SELECT conversation_id, seq, applied, event_id, sender, body, content_type, mentions, \
    mention_all, silent, reply_to, edited_at, recalled, occurred_at, logged_at FROM {table} \
    WHERE user_id = ? AND period = ? AND (conversation_id, seq) > (?, ?) LIMIT ?";
const SCAN: &str = "SELECT user_id, period, conversation_id, seq, applied, event_id, sender, body, content_type, \
    mentions, mention_all, silent, reply_to, edited_at, recalled, occurred_at, logged_at FROM {table} \
    WHERE token(user_id, period) > ? AND token(user_id, period) <= ?";

/// The statements of one generation's copies.
#[derive(Debug)]
pub(super) struct Copies {
    insert: Statement,
    select_some: Statement,
    select_range: Statement,
    select_after: Statement,
    scan: Statement,
}

/// A copy, whose it is and of which conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOf {
    /// The user.
    pub user: UserId,
    /// The period it was logged in.
    pub period: Period,
    /// The conversation.
    pub conversation: ConversationId,
    /// The message.
    pub stored: Stored,
}

impl Copies {
    pub(super) async fn prepare(link: &Link, names: &Names) -> Result<Self, StoreError> {
        let table = names.table("copies");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select_some: link.prepare(&table, SELECT_SOME).await?,
            select_range: link.prepare(&table, SELECT_RANGE).await?.of_messages(),
            select_after: link.prepare(&table, SELECT_AFTER).await?.of_messages(),
            scan: link.prepare(&table, SCAN).await?.of_messages(),
        })
    }

    /// The writes of copies that have not expired by `now` (milliseconds since 1970), and how many have.
    pub(super) fn writes<'a>(
        &'a self,
        link: &'a Link,
        settings: &GenerationSettings,
        now: i64,
        copies: impl IntoIterator<Item = ((&'a UserId, Period), &'a ConversationId, &'a Stored)>,
    ) -> Result<(Vec<Job<'a, Written>>, usize), StoreError> {
        let mut rows = Vec::new();
        let mut expired = 0;
        for ((user, period), conversation, stored) in copies {
            let left = period.expires_at(settings).saturating_sub(now);
            let Some(ttl) = TimeToLive::of_millis(left, now) else {
                expired += 1;
                continue;
            };
            let row = MessageRow::of(conversation, stored).map_err(|bad| {
                let key = format!("{user}, {conversation}, seq {}", stored.message.seq);
                StoreError::unwritable(self.insert.table(), key, bad)
            })?;
            rows.push(CopyInsert {
                user_id: user.as_str(),
                period: period.get(),
                timestamp: WriteTimestamp::applied(stored.applied),
                ttl,
                row,
            });
        }
        Ok((write_jobs(link, &self.insert, rows), expired))
    }

    /// Those of `seqs` in one conversation that a user has a copy of.
    pub(super) async fn read_some(
        &self,
        link: &Link,
        (user, period): (&UserId, Period),
        conversation: &ConversationId,
        seqs: &[Seq],
    ) -> Result<BTreeMap<Seq, Stored>, StoreError> {
        // A seq beyond a bigint is none that a row has.
        let seqs: Vec<i64> = seqs
            .iter()
            .filter_map(|seq| i64::try_from(seq.get()).ok())
            .collect();
        let values = (user.as_str(), period.get(), conversation.as_str(), seqs);
        let rows: Vec<MessageOf> = link
            .all(&self.select_some, &values, key(user, period))
            .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.stored.message.seq, row.stored))
            .collect())
    }

    pub(super) async fn read_range(
        &self,
        link: &Link,
        (user, period): (&UserId, Period),
        conversation: &ConversationId,
        (from, to): (Seq, Seq),
        limit: usize,
    ) -> Result<Vec<Stored>, StoreError> {
        let Some(limit) = bound(limit) else {
            return Ok(Vec::new());
        };
        let seq = |seq: Seq| i64::try_from(seq.get()).unwrap_or(i64::MAX);
        let values = (
            user.as_str(),
            period.get(),
            conversation.as_str(),
            seq(from),
            seq(to),
            limit,
        );
        let rows: Vec<MessageOf> = link
            .all(&self.select_range, &values, key(user, period))
            .await?;
        Ok(rows.into_iter().map(|row| row.stored).collect())
    }

    pub(super) async fn read_after(
        &self,
        link: &Link,
        (user, period): (&UserId, Period),
        after: Option<(&ConversationId, Seq)>,
        limit: usize,
    ) -> Result<Vec<MessageOf>, StoreError> {
        let Some(limit) = bound(limit) else {
            return Ok(Vec::new());
        };
        // Ids are never empty, so all come after the empty text.
        let (conversation, seq) = after.map_or(("", Seq::ZERO), |(conversation, seq)| {
            (conversation.as_str(), seq)
        });
        let seq = i64::try_from(seq.get()).unwrap_or(i64::MAX);
        let values = (user.as_str(), period.get(), conversation, seq, limit);
        link.all(&self.select_after, &values, key(user, period))
            .await
    }

    pub(super) fn scan<'a>(
        &'a self,
        link: &'a Link,
        range: TokenRange,
    ) -> BoxStream<'a, Result<CopyOf, StoreError>> {
        link.scan(&self.scan, range.bounds(), range.to_string())
    }
}

fn key(user: &UserId, period: Period) -> String {
    format!("{user}, period {}", period.get())
}

/// A limit as CQL has it, which knows none of 0.
fn bound(limit: usize) -> Option<i32> {
    match i32::try_from(limit).unwrap_or(i32::MAX) {
        0 => None,
        limit => Some(limit),
    }
}

#[derive(Debug, SerializeRow)]
struct CopyInsert<'r> {
    user_id: &'r str,
    period: i64,
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
    #[scylla(rename = "[ttl]")]
    ttl: TimeToLive,
    #[scylla(flatten)]
    row: MessageRow<'r>,
}

/// A copy with its whole key: two columns, then those of a message.
#[derive(Debug)]
pub(crate) struct CopyRow<'r> {
    user_id: &'r str,
    period: i64,
    row: MessageRow<'r>,
}

impl<'frame, 'metadata> DeserializeRow<'frame, 'metadata> for CopyRow<'frame> {
    fn type_check(columns: &[ColumnSpec<'_>]) -> Result<(), TypeCheckError> {
        let (key, message) = columns.split_at(columns.len().min(2));
        <(&str, i64) as DeserializeRow>::type_check(key)?;
        MessageRow::type_check(message)
    }

    fn deserialize(
        mut columns: ColumnIterator<'frame, 'metadata>,
    ) -> Result<Self, DeserializationError> {
        Ok(Self {
            user_id: value(&mut columns)?,
            period: value(&mut columns)?,
            row: MessageRow::deserialize(columns)?,
        })
    }
}

/// The next column of a row.
fn value<'frame, 'metadata, T: DeserializeValue<'frame, 'metadata>>(
    columns: &mut ColumnIterator<'frame, 'metadata>,
) -> Result<T, DeserializationError> {
    match columns.next() {
        Some(column) => {
            let column = column?;
            T::deserialize(column.spec.typ(), column.slice)
        }
        None => Err(DeserializationError::new(std::io::Error::other(
            "the row has too few columns",
        ))),
    }
}

impl Readable for CopyOf {
    type Row<'r> = CopyRow<'r>;

    fn key(row: &CopyRow<'_>) -> String {
        let message = MessageOf::key(&row.row);
        format!("{}, period {}, {message}", row.user_id, row.period)
    }

    fn read(row: CopyRow<'_>) -> Result<Self, BadColumn> {
        let message = MessageOf::read(row.row)?;
        Ok(Self {
            user: column::user("user_id", row.user_id)?,
            period: Period::new(row.period),
            conversation: message.conversation,
            stored: message.stored,
        })
    }
}

impl<'r> Writable for CopyInsert<'r> {
    type Partition = (&'r str, i64);

    fn partition(&self) -> Self::Partition {
        (self.user_id, self.period)
    }

    fn bytes(&self) -> usize {
        const FIXED: usize = 20;
        FIXED + self.user_id.len() + self.row.bytes()
    }

    fn key(&self) -> String {
        let message = MessageOf::key(&self.row);
        format!("{}, period {}, {message}", self.user_id, self.period)
    }
}
