//! `roaming_<generation>_refusals`: events that were refused, so that their senders can be told.

use scylla::{DeserializeRow, SerializeRow, value::CqlTimestamp};
use tidemark_event::{ConversationId, EventId, LogTime, Offset};
use tidemark_fold::{DedupeWindow, Reason};
use uuid::Uuid;

use crate::{
    column::{self, BadColumn},
    error::StoreError,
    link::{Job, Link, Readable, Statement},
    schema::Names,
    store::now,
    timestamp::WriteTimestamp,
    ttl::TimeToLive,
    write::{Writable, Written, write_jobs},
};

const INSERT: &str = "INSERT INTO {table} (conversation_id, event_id, log_offset, reason, log_time) \
    VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
const SELECT: &str = "SELECT conversation_id, event_id, log_offset, reason, log_time FROM {table} \
    WHERE conversation_id = ? AND event_id = ?";

/// A record that was refused. An acceptance of the same id, from another record, outranks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The conversation that the event is about, whether it exists or not.
    pub conversation: ConversationId,
    /// The event's id.
    pub event_id: EventId,
    /// The record's offset.
    pub offset: Offset,
    /// Why it was refused.
    pub reason: Reason,
    /// Log time of the record.
    pub log_time: LogTime,
}

/// The statements of one generation's refusals.
#[derive(Debug)]
pub(super) struct Refusals {
    insert: Statement,
    select: Statement,
}

impl Refusals {
    pub(super) async fn prepare(link: &Link, names: &Names) -> Result<Self, StoreError> {
        let table = names.table("refusals");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select: link.prepare(&table, SELECT).await?,
        })
    }

    pub(super) fn writes<'a>(
        &'a self,
        link: &'a Link,
        window: DedupeWindow,
        refusals: &'a [Refusal],
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let Some(ttl) = TimeToLive::of_millis(window.millis.saturating_mul(2), now()) else {
            return Ok(Vec::new());
        };
        let mut rows = Vec::new();
        for refusal in refusals {
            let row = RefusalRow::of(refusal).map_err(|bad| {
                let key = format!("{}, {}", refusal.conversation, refusal.event_id);
                StoreError::unwritable(self.insert.table(), key, bad)
            })?;
            rows.push(RefusalInsert {
                timestamp: WriteTimestamp::applied(refusal.offset),
                ttl,
                row,
            });
        }
        Ok(write_jobs(link, &self.insert, rows))
    }

    pub(super) async fn read(
        &self,
        link: &Link,
        conversation: &ConversationId,
        id: EventId,
    ) -> Result<Vec<Refusal>, StoreError> {
        let values = (conversation.as_str(), id.uuid());
        link.all(&self.select, &values, format!("{conversation}, {id}"))
            .await
    }
}

#[derive(Debug, SerializeRow, DeserializeRow)]
pub(crate) struct RefusalRow<'r> {
    conversation_id: &'r str,
    event_id: Uuid,
    log_offset: i64,
    reason: &'r str,
    log_time: CqlTimestamp,
}

#[derive(Debug, SerializeRow)]
struct RefusalInsert<'r> {
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
    #[scylla(rename = "[ttl]")]
    ttl: TimeToLive,
    #[scylla(flatten)]
    row: RefusalRow<'r>,
}

impl<'r> RefusalRow<'r> {
    fn of(refusal: &'r Refusal) -> Result<Self, BadColumn> {
        Ok(Self {
            conversation_id: refusal.conversation.as_str(),
            event_id: refusal.event_id.uuid(),
            log_offset: column::from_offset("log_offset", refusal.offset)?,
            reason: refusal.reason.as_str(),
            log_time: column::from_time(refusal.log_time),
        })
    }
}

impl Readable for Refusal {
    type Row<'r> = RefusalRow<'r>;

    fn key(row: &RefusalRow<'_>) -> String {
        format!("{}, {}", row.conversation_id, row.event_id)
    }

    fn read(row: RefusalRow<'_>) -> Result<Self, BadColumn> {
        Ok(Self {
            conversation: column::conversation("conversation_id", row.conversation_id)?,
            event_id: EventId::new(row.event_id),
            offset: column::offset("log_offset", row.log_offset)?,
            reason: column::word("reason", row.reason, Reason::ALL, Reason::as_str)?,
            log_time: column::time("log_time", row.log_time)?,
        })
    }
}

impl<'r> Writable for RefusalInsert<'r> {
    type Partition = &'r str;

    fn partition(&self) -> &'r str {
        self.row.conversation_id
    }

    fn bytes(&self) -> usize {
        const FIXED: usize = 100;
        FIXED + self.row.conversation_id.len() + self.row.reason.len()
    }

    fn key(&self) -> String {
        Refusal::key(&self.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_back_whatever_its_reason() {
        for reason in Reason::ALL {
            let refusal = Refusal {
                conversation: ConversationId::new("g1").unwrap(),
                event_id: EventId::new(Uuid::from_u128(7)),
                offset: Offset::new(12),
                reason,
                log_time: LogTime::from_millis(1_000),
            };
            let row = RefusalRow::of(&refusal).unwrap();
            assert_eq!(Readable::read(row), Ok(refusal));
        }
    }
}
