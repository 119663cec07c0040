//! `log`: the one log that a keyspace's views are folded from, and its settings.

use scylla::{DeserializeRow, SerializeRow, value::CqlTimestamp};
use tidemark_fold::{DedupeWindow, LogSettings};

use crate::{
    column::{self, BadColumn, Lasting},
    error::StoreError,
    link::{Link, Readable, Statement},
    store::now,
};

const INSERT: &str = "INSERT INTO {table} (topic, partitions, dedupe_window_ms, dedupe_ids, topic_id, created) \
    VALUES (?, ?, ?, ?, ?, ?) IF NOT EXISTS";
const SELECT: &str =
    "SELECT topic, partitions, dedupe_window_ms, dedupe_ids, topic_id FROM {table}";

/// The log as `setup` has recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedLog {
    /// Its Kafka topic.
    pub topic: String,
    /// Kafka's own id of that topic, where it was known.
    pub topic_id: Option<String>,
    /// Its settings, for ever.
    pub settings: LogSettings,
}

/// The statements of the log.
#[derive(Debug)]
pub(crate) struct Logs {
    insert: Statement,
    select: Statement,
}

impl Logs {
    pub(crate) async fn prepare(link: &Link, keyspace: &str) -> Result<Self, StoreError> {
        let table = format!("{keyspace}.log");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select: link.prepare(&table, SELECT).await?,
        })
    }

    /// Records the log, unless one of that topic is recorded already.
    pub(crate) async fn write_first(
        &self,
        link: &Link,
        log: &RecordedLog,
    ) -> Result<(), StoreError> {
        let row = LogInsert::of(log)
            .map_err(|bad| StoreError::unwritable(self.insert.table(), log.topic.clone(), bad))?;
        link.write_if(&self.insert, &row, log.topic.clone()).await?;
        Ok(())
    }

    /// Every recorded log: one, unless two were recorded at the same moment.
    pub(crate) async fn read(&self, link: &Link) -> Result<Vec<RecordedLog>, StoreError> {
        link.all(&self.select, &(), "every row").await
    }
}

#[derive(Debug, SerializeRow)]
struct LogInsert<'r> {
    topic: &'r str,
    partitions: i32,
    dedupe_window_ms: i64,
    dedupe_ids: i64,
    topic_id: Lasting<&'r str>,
    created: CqlTimestamp,
}

#[derive(Debug, DeserializeRow)]
pub(crate) struct LogRow<'r> {
    topic: &'r str,
    partitions: i32,
    dedupe_window_ms: i64,
    dedupe_ids: i64,
    topic_id: Option<&'r str>,
}

impl<'r> LogInsert<'r> {
    fn of(log: &'r RecordedLog) -> Result<Self, BadColumn> {
        Ok(Self {
            topic: &log.topic,
            partitions: i32::from(log.settings.partitions),
            dedupe_window_ms: log.settings.dedupe.millis,
            dedupe_ids: column::bigint("dedupe_ids", log.settings.dedupe.ids)?,
            topic_id: Lasting(log.topic_id.as_deref()),
            created: CqlTimestamp(now()),
        })
    }
}

impl Readable for RecordedLog {
    type Row<'r> = LogRow<'r>;

    fn key(row: &LogRow<'_>) -> String {
        row.topic.to_owned()
    }

    fn read(row: LogRow<'_>) -> Result<Self, BadColumn> {
        Ok(Self {
            topic: row.topic.to_owned(),
            topic_id: row.topic_id.map(str::to_owned),
            settings: LogSettings {
                partitions: column::number("partitions", i64::from(row.partitions))?,
                dedupe: DedupeWindow {
                    millis: row.dedupe_window_ms,
                    ids: column::number("dedupe_ids", row.dedupe_ids)?,
                },
            },
        })
    }
}
