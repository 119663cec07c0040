//! `<view>_<generation>_dedupe`: accepted event ids, in pieces that are appended to and deleted whole.
//!
//! A piece may be deleted once a checkpoint that has left it is acknowledged. The delete is stamped with that
//! checkpoint, so it takes all that was written by records before it, and no write of a slower worker brings one back.

use futures::FutureExt;
use scylla::{DeserializeRow, SerializeRow, value::CqlTimestamp};
use tidemark_event::{ConversationId, EventId};
use tidemark_fold::{AcceptedId, PieceNo};
use uuid::Uuid;

use crate::{
    Checkpoint,
    column::{self, BadColumn, Lasting},
    error::StoreError,
    link::{Job, Link, Readable, Statement},
    schema::Names,
    timestamp::WriteTimestamp,
    write::{Writable, Written, write_jobs},
};

const INSERT: &str = "INSERT INTO {table} (conversation_id, piece, event_id, log_offset, ordinal, log_time, seq) \
    VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
const SELECT_PIECE: &str = "SELECT conversation_id, piece, event_id, log_offset, ordinal, log_time, seq FROM {table} \
    WHERE conversation_id = ? AND piece = ?";
const SELECT_ID: &str = "SELECT conversation_id, piece, event_id, log_offset, ordinal, log_time, seq FROM {table} \
    WHERE conversation_id = ? AND piece = ? AND event_id = ?";
const DELETE: &str =
    "DELETE FROM {table} USING TIMESTAMP ? WHERE conversation_id = ? AND piece = ?";

/// The statements of one generation's dedupe pieces.
#[derive(Debug)]
pub(crate) struct Dedupe {
    insert: Statement,
    select_piece: Statement,
    select_id: Statement,
    delete: Statement,
}

impl Dedupe {
    pub(crate) async fn prepare(link: &Link, names: &Names) -> Result<Self, StoreError> {
        let table = names.table("dedupe");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select_piece: link.prepare(&table, SELECT_PIECE).await?,
            select_id: link.prepare(&table, SELECT_ID).await?,
            delete: link.prepare(&table, DELETE).await?,
        })
    }

    pub(crate) fn writes<'a>(
        &'a self,
        link: &'a Link,
        ids: impl IntoIterator<Item = (&'a ConversationId, PieceNo, &'a AcceptedId)>,
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let mut rows = Vec::new();
        for (conversation, piece, id) in ids {
            let row = IdRow::of(conversation, piece, id).map_err(|bad| {
                let key = format!("{conversation}, piece {}, {}", piece.get(), id.id);
                StoreError::unwritable(self.insert.table(), key, bad)
            })?;
            rows.push(IdInsert {
                timestamp: WriteTimestamp::applied(id.offset),
                row,
            });
        }
        Ok(write_jobs(link, &self.insert, rows))
    }

    pub(crate) async fn read_piece(
        &self,
        link: &Link,
        conversation: &ConversationId,
        piece: PieceNo,
    ) -> Result<Vec<AcceptedId>, StoreError> {
        let (number, key) = self.piece(conversation, piece)?;
        link.all(&self.select_piece, &(conversation.as_str(), number), key)
            .await
    }

    pub(crate) fn read_id<'a>(
        &'a self,
        link: &'a Link,
        conversation: &'a ConversationId,
        piece: PieceNo,
        id: EventId,
    ) -> Job<'a, Vec<AcceptedId>> {
        async move {
            let (number, key) = self.piece(conversation, piece)?;
            let values = (conversation.as_str(), number, id.uuid());
            link.all(&self.select_id, &values, key).await
        }
        .boxed()
    }

    pub(crate) fn deletes<'a>(
        &'a self,
        link: &'a Link,
        pieces: &'a [(ConversationId, PieceNo)],
        at: &Checkpoint,
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let mut rows = Vec::new();
        for (conversation, piece) in pieces {
            rows.push(PieceDelete {
                timestamp: WriteTimestamp::checkpoint(at.next_offset),
                conversation_id: conversation.as_str(),
                piece: self.piece(conversation, *piece)?.0,
            });
        }
        Ok(write_jobs(link, &self.delete, rows))
    }

    /// A piece's number as CQL has it, and its name in errors.
    fn piece(
        &self,
        conversation: &ConversationId,
        piece: PieceNo,
    ) -> Result<(i64, String), StoreError> {
        let key = format!("{conversation}, piece {}", piece.get());
        match column::bigint("piece", piece.get()) {
            Ok(number) => Ok((number, key)),
            Err(bad) => Err(StoreError::unwritable(self.insert.table(), key, bad)),
        }
    }
}

#[derive(Debug, SerializeRow, DeserializeRow)]
pub(crate) struct IdRow<'r> {
    conversation_id: &'r str,
    piece: i64,
    event_id: Uuid,
    log_offset: i64,
    ordinal: i64,
    log_time: CqlTimestamp,
    seq: Lasting<i64>,
}

#[derive(Debug, SerializeRow)]
struct IdInsert<'r> {
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
    #[scylla(flatten)]
    row: IdRow<'r>,
}

#[derive(Debug, SerializeRow)]
struct PieceDelete<'r> {
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
    conversation_id: &'r str,
    piece: i64,
}

impl<'r> IdRow<'r> {
    fn of(
        conversation: &'r ConversationId,
        piece: PieceNo,
        id: &AcceptedId,
    ) -> Result<Self, BadColumn> {
        let seq = id.seq.map(|seq| column::from_seq("seq", seq)).transpose()?;
        Ok(Self {
            conversation_id: conversation.as_str(),
            piece: column::bigint("piece", piece.get())?,
            event_id: id.id.uuid(),
            log_offset: column::from_offset("log_offset", id.offset)?,
            ordinal: column::bigint("ordinal", id.ordinal)?,
            log_time: column::from_time(id.log_time),
            seq: Lasting(seq),
        })
    }
}

impl Readable for AcceptedId {
    type Row<'r> = IdRow<'r>;

    fn key(row: &IdRow<'_>) -> String {
        format!(
            "{}, piece {}, {}",
            row.conversation_id, row.piece, row.event_id
        )
    }

    fn read(row: IdRow<'_>) -> Result<Self, BadColumn> {
        Ok(Self {
            id: EventId::new(row.event_id),
            offset: column::offset("log_offset", row.log_offset)?,
            ordinal: column::number("ordinal", row.ordinal)?,
            log_time: column::time("log_time", row.log_time)?,
            seq: row
                .seq
                .0
                .map(|seq| column::message_seq("seq", seq))
                .transpose()?,
        })
    }
}

impl<'r> Writable for IdInsert<'r> {
    type Partition = (&'r str, i64);

    fn partition(&self) -> Self::Partition {
        (self.row.conversation_id, self.row.piece)
    }

    fn bytes(&self) -> usize {
        const FIXED: usize = 110;
        FIXED + self.row.conversation_id.len()
    }

    fn key(&self) -> String {
        AcceptedId::key(&self.row)
    }
}

impl<'r> Writable for PieceDelete<'r> {
    type Partition = (&'r str, i64);

    fn partition(&self) -> Self::Partition {
        (self.conversation_id, self.piece)
    }

    fn bytes(&self) -> usize {
        const FIXED: usize = 50;
        FIXED + self.conversation_id.len()
    }

    fn key(&self) -> String {
        format!("{}, piece {}", self.conversation_id, self.piece)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    proptest! {
        #[test]
        fn an_id_reads_back_as_it_was_written(
            conversation in sample::conversation(),
            id in sample::accepted_id(),
        ) {
            let row = IdRow::of(&conversation, PieceNo::FIRST, &id).unwrap();
            prop_assert_eq!(Readable::read(row), Ok(id));
        }
    }
}
