//! `checkpoints`: how far a generation of a view has come in each partition of the log.

use std::collections::BTreeMap;

use scylla::{DeserializeRow, SerializeRow, value::CqlTimestamp};
use tidemark_event::{Fingerprint, LogTime, NextOffset, Offset, Partition};
use tidemark_fold::ViewName;

use crate::{
    GenerationNo,
    column::{self, BadColumn},
    error::StoreError,
    link::{Link, Readable, Statement},
    timestamp::WriteTimestamp,
    write::Written,
};

const INSERT: &str = "INSERT INTO {table} (view_name, generation, log_partition, next_offset, last_offset, log_time, \
    fingerprint) VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
const SELECT: &str = "SELECT log_partition, next_offset, last_offset, log_time, fingerprint FROM {table} \
    WHERE view_name = ? AND generation = ? AND log_partition = ?";
const SELECT_ALL: &str = "SELECT log_partition, next_offset, last_offset, log_time, fingerprint FROM {table} \
    WHERE view_name = ? AND generation = ?";
const DELETE: &str = "DELETE FROM {table} WHERE view_name = ? AND generation = ?";

/// Where a generation of a view is in one partition of the log: what a resume begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The record to read next.
    pub next_offset: NextOffset,
    /// The newest record read, whatever came of it; none before the first.
    pub last: Option<LastRecord>,
    /// Log time as of that record.
    pub log_time: LogTime,
}

/// A record that a checkpoint rests on. Markers of transactions and other holes in the offsets may lie between it and
/// the checkpoint's next offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRecord {
    /// Its offset.
    pub offset: Offset,
    /// Tells it from another record at its offset in a topic made anew.
    pub fingerprint: Fingerprint,
}

/// The statements of the checkpoints of all generations.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    insert: Statement,
    select: Statement,
    select_all: Statement,
    delete: Statement,
}

impl Checkpoints {
    pub(crate) async fn prepare(link: &Link, keyspace: &str) -> Result<Self, StoreError> {
        let table = format!("{keyspace}.checkpoints");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select: link.prepare(&table, SELECT).await?,
            select_all: link.prepare(&table, SELECT_ALL).await?,
            delete: link.prepare(&table, DELETE).await?,
        })
    }

    pub(crate) async fn write(
        &self,
        link: &Link,
        of: (ViewName, GenerationNo),
        partition: Partition,
        checkpoint: &Checkpoint,
    ) -> Result<Written, StoreError> {
        let key = key(of, Some(partition));
        let row = CheckpointInsert::of(of, partition, checkpoint)
            .map_err(|bad| StoreError::unwritable(self.insert.table(), key.clone(), bad))?;
        link.write(&self.insert, &row, || key).await?;
        const BYTES: usize = 80;
        Ok(Written {
            requests: 1,
            rows: 1,
            bytes: BYTES,
            expired: 0,
        })
    }

    pub(crate) async fn read(
        &self,
        link: &Link,
        of: (ViewName, GenerationNo),
        partition: Partition,
    ) -> Result<Option<Checkpoint>, StoreError> {
        let values = (of.0.as_str(), of.1.as_int(), partition.get());
        let row: Option<(Partition, Checkpoint)> = link
            .first(&self.select, &values, key(of, Some(partition)))
            .await?;
        Ok(row.map(|(_, checkpoint)| checkpoint))
    }

    pub(crate) async fn read_all(
        &self,
        link: &Link,
        of: (ViewName, GenerationNo),
    ) -> Result<BTreeMap<Partition, Checkpoint>, StoreError> {
        let values = (of.0.as_str(), of.1.as_int());
        let rows: Vec<(Partition, Checkpoint)> =
            link.all(&self.select_all, &values, key(of, None)).await?;
        Ok(rows.into_iter().collect())
    }

    /// Forgets a generation that was dropped. Stamped by the clock, so newer than every checkpoint there will ever be:
    /// the number is not used again.
    pub(crate) async fn delete(
        &self,
        link: &Link,
        of: (ViewName, GenerationNo),
    ) -> Result<(), StoreError> {
        let values = (of.0.as_str(), of.1.as_int());
        link.write(&self.delete, &values, || key(of, None)).await
    }
}

fn key((view, generation): (ViewName, GenerationNo), partition: Option<Partition>) -> String {
    match partition {
        Some(partition) => format!("{view} generation {generation}, partition {partition}"),
        None => format!("{view} generation {generation}"),
    }
}

#[derive(Debug, SerializeRow)]
struct CheckpointInsert {
    view_name: &'static str,
    generation: i32,
    #[scylla(flatten)]
    row: CheckpointRow,
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
}

#[derive(Debug, SerializeRow, DeserializeRow)]
pub(crate) struct CheckpointRow {
    log_partition: i32,
    next_offset: i64,
    last_offset: i64,
    log_time: CqlTimestamp,
    fingerprint: i64,
}

impl CheckpointInsert {
    fn of(
        (view, generation): (ViewName, GenerationNo),
        partition: Partition,
        checkpoint: &Checkpoint,
    ) -> Result<Self, BadColumn> {
        let row = CheckpointRow {
            log_partition: partition.get(),
            next_offset: checkpoint.next_offset.get(),
            last_offset: checkpoint.last.map_or(-1, |last| last.offset.get()),
            log_time: column::from_time(checkpoint.log_time),
            fingerprint: checkpoint.last.map_or(0, |last| last.fingerprint.as_i64()),
        };
        row.check()?;
        Ok(Self {
            view_name: view.as_str(),
            generation: generation.as_int(),
            row,
            timestamp: WriteTimestamp::checkpoint(checkpoint.next_offset),
        })
    }
}

impl CheckpointRow {
    fn check(&self) -> Result<(), BadColumn> {
        column::number::<u64>("next_offset", self.next_offset)?;
        if self.last_offset < -1 || self.last_offset >= self.next_offset {
            let problem = format!(
                "is {} at next offset {}",
                self.last_offset, self.next_offset
            );
            return Err(BadColumn::new("last_offset", problem));
        }
        Ok(())
    }
}

impl Readable for (Partition, Checkpoint) {
    type Row<'r> = CheckpointRow;

    fn key(row: &CheckpointRow) -> String {
        format!("partition {}", row.log_partition)
    }

    fn read(row: CheckpointRow) -> Result<Self, BadColumn> {
        row.check()?;
        let last = (row.last_offset >= 0).then_some(LastRecord {
            offset: Offset::new(row.last_offset),
            fingerprint: Fingerprint::from_i64(row.fingerprint),
        });
        let checkpoint = Checkpoint {
            next_offset: NextOffset::new(row.next_offset),
            last,
            log_time: column::time("log_time", row.log_time)?,
        };
        Ok((Partition::new(row.log_partition), checkpoint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(next_offset: i64, last_offset: Option<i64>) -> Checkpoint {
        Checkpoint {
            next_offset: NextOffset::new(next_offset),
            last: last_offset.map(|offset| LastRecord {
                offset: Offset::new(offset),
                fingerprint: Fingerprint::from_i64(-7),
            }),
            log_time: LogTime::from_millis(1_000),
        }
    }

    #[test]
    fn a_checkpoint_reads_back_as_it_was_written() {
        let of = (ViewName::Inbox, GenerationNo::FIRST);
        for checkpoint in [at(0, None), at(9, None), at(9, Some(8)), at(9, Some(3))] {
            let partition = Partition::new(3);
            let written = CheckpointInsert::of(of, partition, &checkpoint).unwrap();
            assert_eq!(Readable::read(written.row), Ok((partition, checkpoint)));
        }
    }

    #[test]
    fn a_checkpoint_never_rests_on_a_record_beyond_it() {
        let of = (ViewName::Inbox, GenerationNo::FIRST);
        for wrong in [at(9, Some(9)), at(-1, None)] {
            assert!(CheckpointInsert::of(of, Partition::new(0), &wrong).is_err());
        }
    }
}
