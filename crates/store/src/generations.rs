//! `generations` and `active_generations`: the builds of each view, and which of them readers use.
//!
//! These are operators' acts: conditional writes, each of which one process wins. What a generation is built with is
//! written once; only its state changes.

use std::fmt;

use scylla::{DeserializeRow, SerializeRow, value::CqlTimestamp};
use tidemark_fold::{GenerationSettings, ViewName};

use crate::{
    column::{self, BadColumn},
    error::StoreError,
    link::{Link, Readable, Statement},
    store::now,
};

const INSERT: &str = "INSERT INTO {table} (view_name, generation, fold_version, bucket_seqs, copy_limit, \
    fan_out_limit, inbox_period_ms, inbox_ttl_ms, block_seqs, piece_ids, state, created) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS";
const SELECT: &str = "SELECT generation, fold_version, bucket_seqs, copy_limit, fan_out_limit, inbox_period_ms, \
    inbox_ttl_ms, block_seqs, piece_ids, state FROM {table} WHERE view_name = ?";
const UPDATE_STATE: &str =
    "UPDATE {table} SET state = ? WHERE view_name = ? AND generation = ? IF state = ?";

const INSERT_ACTIVE: &str =
    "INSERT INTO {table} (view_name, generation) VALUES (?, ?) IF NOT EXISTS";
const UPDATE_ACTIVE: &str =
    "UPDATE {table} SET generation = ? WHERE view_name = ? IF generation = ?";
const SELECT_ACTIVE: &str = "SELECT generation FROM {table} WHERE view_name = ?";

/// Numbers the builds of a view, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GenerationNo(u16);

impl GenerationNo {
    /// The one that `setup` makes.
    pub const FIRST: Self = Self(1);

    /// Takes a number that was given or stored: from 1.
    pub const fn new(number: u16) -> Option<Self> {
        match number {
            0 => None,
            _ => Some(Self(number)),
        }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The one after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number as CQL keeps it.
    pub(crate) fn as_int(self) -> i32 {
        i32::from(self.0)
    }

    fn read(column: &'static str, stored: i32) -> Result<Self, BadColumn> {
        let number = column::number(column, i64::from(stored))?;
        Self::new(number).ok_or_else(|| BadColumn::new(column, "is 0"))
    }
}

impl fmt::Display for GenerationNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Numbers the ways that folds have built rows. Workers build only generations of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FoldVersion(u16);

impl FoldVersion {
    /// Takes a release's own number.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for GenerationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for FoldVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is happening to a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenerationState {
    /// A rebuild has not reached the log's end yet.
    Building,
    /// It follows the log, and may be or become the active one.
    Built,
    /// Its tables are about to be dropped, or being dropped: nobody begins to use it.
    Dropping,
    /// Its tables are gone. It stays recorded, so that its number is never used again.
    Dropped,
}

impl GenerationState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Building, Self::Built, Self::Dropping, Self::Dropped];

    /// Whether its tables are there to stay.
    pub const fn is_usable(self) -> bool {
        match self {
            Self::Building | Self::Built => true,
            Self::Dropping | Self::Dropped => false,
        }
    }

    /// The state as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Building => "building",
            Self::Built => "built",
            Self::Dropping => "dropping",
            Self::Dropped => "dropped",
        }
    }
}

/// A generation as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedGeneration {
    /// Its number.
    pub no: GenerationNo,
    /// The fold that builds it.
    pub fold_version: FoldVersion,
    /// What it is built with, for as long as it lives.
    pub settings: GenerationSettings,
    /// What is happening to it.
    pub state: GenerationState,
}

/// The statements of both tables.
#[derive(Debug)]
pub(crate) struct Generations {
    insert: Statement,
    select: Statement,
    update_state: Statement,
    insert_active: Statement,
    update_active: Statement,
    select_active: Statement,
}

impl Generations {
    pub(crate) async fn prepare(link: &Link, keyspace: &str) -> Result<Self, StoreError> {
        let table = format!("{keyspace}.generations");
        let active = format!("{keyspace}.active_generations");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select: link.prepare(&table, SELECT).await?,
            update_state: link.prepare(&table, UPDATE_STATE).await?,
            insert_active: link.prepare(&active, INSERT_ACTIVE).await?,
            update_active: link.prepare(&active, UPDATE_ACTIVE).await?,
            select_active: link.prepare(&active, SELECT_ACTIVE).await?,
        })
    }

    /// Records a generation, unless one of that number is recorded.
    pub(crate) async fn write_first(
        &self,
        link: &Link,
        view: ViewName,
        generation: &RecordedGeneration,
    ) -> Result<bool, StoreError> {
        let key = format!("{view} generation {}", generation.no);
        let row = GenerationInsert::of(view, generation)
            .map_err(|bad| StoreError::unwritable(self.insert.table(), key.clone(), bad))?;
        link.write_if(&self.insert, &row, key).await
    }

    /// Every generation of a view that is recorded, oldest first.
    pub(crate) async fn read(
        &self,
        link: &Link,
        view: ViewName,
    ) -> Result<Vec<RecordedGeneration>, StoreError> {
        link.all(&self.select, &(view.as_str(),), view.as_str())
            .await
    }

    pub(crate) async fn change_state(
        &self,
        link: &Link,
        (view, no): (ViewName, GenerationNo),
        from: GenerationState,
        to: GenerationState,
    ) -> Result<bool, StoreError> {
        let values = (to.as_str(), view.as_str(), no.as_int(), from.as_str());
        let key = format!("{view} generation {no}");
        link.write_if(&self.update_state, &values, key).await
    }

    pub(crate) async fn read_active(
        &self,
        link: &Link,
        view: ViewName,
    ) -> Result<Option<GenerationNo>, StoreError> {
        link.first(&self.select_active, &(view.as_str(),), view.as_str())
            .await
    }

    /// Makes `to` the active generation where `from` is, or none.
    pub(crate) async fn activate(
        &self,
        link: &Link,
        view: ViewName,
        from: Option<GenerationNo>,
        to: GenerationNo,
    ) -> Result<bool, StoreError> {
        let key = view.to_string();
        match from {
            None => {
                let values = (view.as_str(), to.as_int());
                link.write_if(&self.insert_active, &values, key).await
            }
            Some(from) => {
                let values = (to.as_int(), view.as_str(), from.as_int());
                link.write_if(&self.update_active, &values, key).await
            }
        }
    }
}

#[derive(Debug, SerializeRow)]
struct GenerationInsert {
    view_name: &'static str,
    #[scylla(flatten)]
    row: GenerationRow,
    created: CqlTimestamp,
}

#[derive(Debug, SerializeRow, DeserializeRow)]
pub(crate) struct GenerationRow {
    generation: i32,
    fold_version: i32,
    bucket_seqs: i64,
    copy_limit: i64,
    fan_out_limit: i64,
    inbox_period_ms: i64,
    inbox_ttl_ms: i64,
    block_seqs: i64,
    piece_ids: i64,
    state: String,
}

#[derive(Debug, DeserializeRow)]
pub(crate) struct ActiveRow {
    generation: i32,
}

impl GenerationInsert {
    fn of(view: ViewName, generation: &RecordedGeneration) -> Result<Self, BadColumn> {
        Ok(Self {
            view_name: view.as_str(),
            row: GenerationRow::of(generation)?,
            created: CqlTimestamp(now()),
        })
    }
}

impl GenerationRow {
    fn of(generation: &RecordedGeneration) -> Result<Self, BadColumn> {
        let settings = &generation.settings;
        Ok(Self {
            generation: generation.no.as_int(),
            fold_version: i32::from(generation.fold_version.get()),
            bucket_seqs: column::bigint("bucket_seqs", settings.bucket_seqs)?,
            copy_limit: i64::from(settings.copy_limit),
            fan_out_limit: i64::from(settings.fan_out_limit),
            inbox_period_ms: settings.inbox_period_millis,
            inbox_ttl_ms: settings.inbox_ttl_millis,
            block_seqs: column::bigint("block_seqs", settings.block_seqs)?,
            piece_ids: column::bigint("piece_ids", settings.piece_ids)?,
            state: generation.state.as_str().to_owned(),
        })
    }
}

impl Readable for RecordedGeneration {
    type Row<'r> = GenerationRow;

    fn key(row: &GenerationRow) -> String {
        format!("generation {}", row.generation)
    }

    fn read(row: GenerationRow) -> Result<Self, BadColumn> {
        Ok(Self {
            no: GenerationNo::read("generation", row.generation)?,
            fold_version: FoldVersion(column::number("fold_version", i64::from(row.fold_version))?),
            settings: GenerationSettings {
                bucket_seqs: column::number("bucket_seqs", row.bucket_seqs)?,
                copy_limit: column::number("copy_limit", row.copy_limit)?,
                fan_out_limit: column::number("fan_out_limit", row.fan_out_limit)?,
                inbox_period_millis: column::number("inbox_period_ms", row.inbox_period_ms)?,
                inbox_ttl_millis: column::number("inbox_ttl_ms", row.inbox_ttl_ms)?,
                block_seqs: column::number("block_seqs", row.block_seqs)?,
                piece_ids: column::number("piece_ids", row.piece_ids)?,
            },
            state: column::word(
                "state",
                &row.state,
                GenerationState::ALL,
                GenerationState::as_str,
            )?,
        })
    }
}

impl Readable for GenerationNo {
    type Row<'r> = ActiveRow;

    fn key(row: &ActiveRow) -> String {
        format!("generation {}", row.generation)
    }

    fn read(row: ActiveRow) -> Result<Self, BadColumn> {
        Self::read("generation", row.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_reads_back_as_it_was_recorded() {
        for state in GenerationState::ALL {
            let recorded = RecordedGeneration {
                no: GenerationNo::FIRST.next(),
                fold_version: FoldVersion::new(3),
                settings: GenerationSettings {
                    copy_limit: u32::MAX,
                    ..GenerationSettings::default()
                },
                state,
            };
            let row = GenerationRow::of(&recorded).unwrap();
            assert_eq!(Readable::read(row), Ok(recorded));
        }
    }
}
