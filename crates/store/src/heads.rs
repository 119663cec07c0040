//! `<view>_<generation>_heads`: a conversation's one row of state.

use futures::stream::BoxStream;
use scylla::{DeserializeRow, SerializeRow, value::CqlTimestamp};
use serde::{Serialize, de::DeserializeOwned};
use tidemark_event::{ConversationId, Fingerprint};
use tidemark_fold::Head;

use crate::{
    TokenRange,
    column::{self, BadColumn, Blob},
    error::StoreError,
    link::{Job, Link, Readable, Statement},
    schema::Names,
    timestamp::WriteTimestamp,
    write::{Writable, Written, write_jobs},
};

const INSERT: &str = "INSERT INTO {table} (conversation_id, applied, fingerprint, log_time, last_seq, kind, title, \
    history, creation, members, dedupe, extra) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
const SELECT: &str = "SELECT conversation_id, applied, fingerprint, log_time, last_seq, kind, title, history, \
    creation, members, dedupe, extra FROM {table} WHERE conversation_id = ?";
const SCAN: &str = "SELECT conversation_id, applied, fingerprint, log_time, last_seq, kind, title, history, \
    creation, members, dedupe, extra FROM {table} \
    WHERE token(conversation_id) > ? AND token(conversation_id) <= ?";

/// The statements of one generation's heads.
#[derive(Debug)]
pub(crate) struct Heads {
    insert: Statement,
    select: Statement,
    scan: Statement,
}

impl Heads {
    pub(crate) async fn prepare(link: &Link, names: &Names) -> Result<Self, StoreError> {
        let table = names.table("heads");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select: link.prepare(&table, SELECT).await?,
            scan: link.prepare(&table, SCAN).await?,
        })
    }

    pub(crate) fn writes<'a, E: Serialize + 'a>(
        &'a self,
        link: &'a Link,
        heads: impl IntoIterator<Item = (&'a ConversationId, &'a Head<E>)>,
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let mut rows = Vec::new();
        for (conversation, head) in heads {
            let row = HeadRow::of(conversation, head).map_err(|bad| {
                StoreError::unwritable(self.insert.table(), conversation.to_string(), bad)
            })?;
            rows.push(HeadInsert {
                timestamp: WriteTimestamp::applied(head.applied),
                row,
            });
        }
        Ok(write_jobs(link, &self.insert, rows))
    }

    pub(crate) async fn read<E: DeserializeOwned + Send>(
        &self,
        link: &Link,
        conversation: &ConversationId,
    ) -> Result<Option<Head<E>>, StoreError> {
        let found: Option<(ConversationId, Head<E>)> = link
            .first(
                &self.select,
                &(conversation.as_str(),),
                conversation.as_str(),
            )
            .await?;
        Ok(found.map(|(_, head)| head))
    }

    pub(crate) fn scan<'a, E: DeserializeOwned + Send + 'a>(
        &'a self,
        link: &'a Link,
        range: TokenRange,
    ) -> BoxStream<'a, Result<(ConversationId, Head<E>), StoreError>> {
        link.scan(&self.scan, range.bounds(), range.to_string())
    }
}

#[derive(Debug, SerializeRow, DeserializeRow)]
pub(crate) struct HeadRow<'r> {
    conversation_id: &'r str,
    applied: i64,
    fingerprint: i64,
    log_time: CqlTimestamp,
    last_seq: i64,
    kind: &'r str,
    title: &'r str,
    history: &'r str,
    creation: i64,
    members: i64,
    dedupe: Blob<'r>,
    extra: Blob<'r>,
}

#[derive(Debug, SerializeRow)]
struct HeadInsert<'r> {
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
    #[scylla(flatten)]
    row: HeadRow<'r>,
}

impl<'r> HeadRow<'r> {
    fn of<E: Serialize>(
        conversation: &'r ConversationId,
        head: &'r Head<E>,
    ) -> Result<Self, BadColumn> {
        Ok(Self {
            conversation_id: conversation.as_str(),
            applied: column::from_offset("applied", head.applied)?,
            fingerprint: head.fingerprint.as_i64(),
            log_time: column::from_time(head.log_time),
            last_seq: column::from_seq("last_seq", head.last_seq)?,
            kind: column::from_kind(head.kind),
            title: &head.title,
            history: column::from_history(head.history),
            // A digest: all 64 bits, as bigint has them.
            creation: head.creation as i64,
            members: i64::from(head.members),
            dedupe: Blob::encode("dedupe", &head.dedupe)?,
            extra: Blob::encode("extra", &head.extra)?,
        })
    }
}

impl<E: DeserializeOwned + Send> Readable for (ConversationId, Head<E>) {
    type Row<'r> = HeadRow<'r>;

    fn key(row: &HeadRow<'_>) -> String {
        row.conversation_id.to_owned()
    }

    fn read(row: HeadRow<'_>) -> Result<Self, BadColumn> {
        let head = Head {
            applied: column::offset("applied", row.applied)?,
            fingerprint: Fingerprint::from_i64(row.fingerprint),
            log_time: column::time("log_time", row.log_time)?,
            last_seq: column::seq("last_seq", row.last_seq)?,
            kind: column::kind("kind", row.kind)?,
            title: row.title.to_owned(),
            history: column::history("history", row.history)?,
            creation: row.creation as u64,
            members: column::number("members", row.members)?,
            dedupe: row.dedupe.decode("dedupe")?,
            extra: row.extra.decode("extra")?,
        };
        Ok((
            column::conversation("conversation_id", row.conversation_id)?,
            head,
        ))
    }
}

impl<'r> Writable for HeadInsert<'r> {
    type Partition = &'r str;

    fn partition(&self) -> &'r str {
        self.row.conversation_id
    }

    fn bytes(&self) -> usize {
        const FIXED: usize = 160;
        let row = &self.row;
        FIXED + row.conversation_id.len() + row.title.len() + row.dedupe.len() + row.extra.len()
    }

    fn key(&self) -> String {
        self.row.conversation_id.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    fn check<E: Serialize + DeserializeOwned + Clone + PartialEq + std::fmt::Debug + Send>(
        conversation: &ConversationId,
        head: &Head<E>,
    ) {
        let read = Readable::read(HeadRow::of(conversation, head).unwrap());
        assert_eq!(read, Ok((conversation.clone(), head.clone())));
    }

    proptest! {
        #[test]
        fn a_head_reads_back_as_it_was_written(
            conversation in sample::conversation(),
            roaming in sample::head(Just(())),
            sessions in sample::head(sample::sessions_extra()),
            inbox in sample::head(sample::inbox_extra()),
        ) {
            check(&conversation, &roaming);
            check(&conversation, &sessions);
            check(&conversation, &inbox);
        }
    }
}
