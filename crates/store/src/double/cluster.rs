//! The contents of a store in memory, and how requests are served from them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    cells::{Cell, Partition, Row},
    cql::{TableDef, Tokens, UnknownCql},
    key::{ClusteringKey, Ordered, PartitionKey, RowKey},
    plan::{Act, Comparison, Condition, Plan, UnpreparedCql},
    request::{
        Answer, Answered, Asked, Change, Mutation, Value, digest_of, insert_key, partition_of,
    },
};

/// A store in memory. A clone is the same store; [`Cluster::copy`] makes another.
#[derive(Debug, Clone, Default)]
pub struct Cluster(Arc<Mutex<Contents>>);

#[derive(Debug, Clone)]
struct Contents {
    tables: BTreeMap<String, Table>,
    plans: BTreeMap<String, Arc<Plan>>,
    /// Milliseconds since 1970.
    now: i64,
    /// Writes that the store's own clock has stamped.
    stamped: i64,
}

#[derive(Debug, Clone)]
struct Table {
    def: Arc<TableDef>,
    partitions: BTreeMap<PartitionKey, Partition>,
}

/// A row that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRow {
    /// Which.
    pub key: RowKey,
    /// The newest in it.
    pub timestamp: i64,
    /// As that of [`RowWrite`](super::RowWrite).
    pub digest: u64,
}

impl std::fmt::Display for StoredRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.key.fmt(f)
    }
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            tables: BTreeMap::new(),
            plans: BTreeMap::new(),
            now: 1_767_225_600_000,
            stamped: 0,
        }
    }
}

impl Cluster {
    /// An empty store, without tables, whose clock stands at the beginning of 2026.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another store with the same contents.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }

    /// Sets the contents to those of another store.
    pub fn restore(&self, from: &Self) {
        let contents = from.lock().clone();
        *self.lock() = contents;
    }

    /// Sets the clock that expiries run by, in milliseconds since 1970.
    pub fn set_now(&self, now: i64) {
        self.lock().now = now;
    }

    /// The names of all tables, without their keyspace.
    pub fn tables(&self) -> Vec<String> {
        let contents = self.lock();
        let tables = contents.tables.values();
        tables
            .map(|table| table.def.short_name().to_owned())
            .collect()
    }

    /// Every row of a table that is there, in the order of keys.
    pub fn rows(&self, table: &str) -> Vec<StoredRow> {
        let contents = self.lock();
        let Some(table) = contents.table(table) else {
            return Vec::new();
        };
        let rows = table.partitions.iter().flat_map(|(partition, stored)| {
            let rows = stored.rows.iter();
            rows.map(move |(clustering, row)| (partition, clustering, row))
        });
        rows.filter(|(_, _, row)| row.is_live(contents.now))
            .filter_map(|(partition, clustering, row)| {
                let cells = row.cells.iter().enumerate().filter_map(|(column, cell)| {
                    let value = cell.as_ref()?.value.as_deref();
                    Some((column, value))
                });
                Some(StoredRow {
                    key: RowKey::of(&table.def, partition.clone(), Some(clustering.clone())),
                    timestamp: row.newest()?,
                    digest: digest_of(cells),
                })
            })
            .collect()
    }

    /// The newest timestamp of anything that was written of a row and is kept, its deletion included.
    pub fn newest(&self, key: &RowKey) -> Option<i64> {
        let contents = self.lock();
        let partition = contents.table(&key.table)?.partitions.get(&key.partition)?;
        let row = key.clustering.as_ref();
        let row = row.and_then(|clustering| partition.rows.get(clustering));
        row.and_then(Row::newest).max(partition.deleted)
    }

    pub(crate) fn prepare(&self, text: &str) -> Result<Arc<Plan>, UnpreparedCql> {
        let mut contents = self.lock();
        if let Some(plan) = contents.plans.get(text) {
            return Ok(plan.clone());
        }
        let find = |name: &str| Some(contents.tables.get(name)?.def.clone());
        let plan = Arc::new(Plan::read(text, find)?);
        contents.plans.insert(text.to_owned(), plan.clone());
        Ok(plan)
    }

    /// Makes or drops a table, or a keyspace, of which nothing is kept.
    pub(crate) fn change_schema(&self, text: &str) -> Result<(), UnknownCql> {
        let mut tokens = Tokens::of(text);
        let mut contents = self.lock();
        if tokens.eat("CREATE TABLE IF NOT EXISTS") {
            let def = Arc::new(TableDef::read(&mut tokens)?);
            let name = def.name.clone();
            contents.tables.entry(name).or_insert_with(|| Table {
                def,
                partitions: BTreeMap::new(),
            });
            return Ok(());
        }
        if tokens.eat("DROP TABLE IF EXISTS") {
            let name = tokens.table()?;
            contents.tables.remove(&name);
            contents.plans.retain(|_, plan| plan.table.name != name);
            return Ok(());
        }
        tokens.expect("CREATE KEYSPACE IF NOT EXISTS")
    }

    pub(super) fn serve(&self, asked: &Asked) -> Answer {
        let mut contents = self.lock();
        Answer(match asked {
            Asked::Read(plan, values) => Answered::Rows(contents.read(plan, values)),
            Asked::Write(mutations) => {
                for mutation in mutations {
                    contents.write(mutation);
                }
                Answered::Written
            }
            Asked::If(plan, values) => Answered::Applied(contents.write_if(plan, values)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    /// A table by its name without a keyspace.
    fn table(&self, name: &str) -> Option<&Table> {
        let mut tables = self.tables.values();
        tables.find(|table| table.def.short_name() == name)
    }

    fn partition(&mut self, table: &TableDef, key: &PartitionKey) -> Option<&mut Partition> {
        let table = self.tables.get_mut(&table.name)?;
        if !table.partitions.contains_key(key) {
            table.partitions.insert(key.clone(), Partition::default());
        }
        table.partitions.get_mut(key)
    }

    /// What the store's own clock stamps a write with, in microseconds.
    fn stamp(&mut self) -> i64 {
        self.stamped += 1;
        self.now * 1_000 + self.stamped
    }

    fn write(&mut self, mutation: &Mutation) {
        let timestamp = mutation.timestamp.unwrap_or_else(|| self.stamp());
        let now = self.now;
        let Some(partition) = self.partition(&mutation.table, &mutation.partition) else {
            return;
        };
        match &mutation.change {
            Change::Delete => partition.delete(timestamp),
            Change::Upsert {
                clustering,
                ttl,
                cells,
            } => {
                let expires = (*ttl > 0).then(|| now + i64::from(*ttl) * 1_000);
                let cell = |value: Option<Arc<[u8]>>| Cell {
                    timestamp,
                    expires: expires.filter(|_| value.is_some()),
                    value,
                };
                let columns = mutation.table.columns.len();
                let marker = cell(Some(Arc::default()));
                let cells = cells
                    .iter()
                    .map(|(column, value)| (*column, cell(value.clone())));
                partition.upsert(clustering, columns, marker, cells);
            }
        }
    }

    fn write_if(&mut self, plan: &Arc<Plan>, values: &[Value]) -> bool {
        let timestamp = self.stamp();
        let now = self.now;
        let table = &plan.table;
        let cell = |value: &Value| Cell {
            timestamp,
            expires: None,
            value: match value {
                Value::Set(value) => Some(value.clone()),
                Value::Null | Value::Unset => None,
            },
        };
        match &plan.act {
            Act::Insert { columns, .. } => {
                let (partition, clustering) = insert_key(table, columns, values);
                let Some(partition) = self.partition(table, &partition) else {
                    return false;
                };
                let row = partition.rows.get(&clustering);
                if row.is_some_and(|row| row.is_live(now)) {
                    return false;
                }
                let cells = columns.iter().zip(values);
                let cells = cells
                    .filter(|(column, value)| {
                        !table.is_key(**column) && !matches!(value, Value::Unset)
                    })
                    .map(|(column, value)| (*column, cell(value)));
                let marker = cell(&Value::Set(Arc::default()));
                partition.upsert(&clustering, table.columns.len(), marker, cells);
                true
            }
            Act::Update { set, key, when } => {
                let partition = partition_of(table, key, values)
                    .and_then(|partition| self.partition(table, &partition));
                let Some(partition) = partition else {
                    return false;
                };
                let row = partition
                    .rows
                    .iter_mut()
                    .find(|(clustering, _)| is_within(table, clustering, key, values));
                let Some((_, row)) = row else { return false };
                let found = row.cells.get(when.0).and_then(Option::as_ref);
                let found = found.and_then(|cell| cell.live(now));
                if found.is_none_or(|found| **found != *values[when.1].bytes()) {
                    return false;
                }
                row.cells[set.0] = Some(cell(&values[set.1]));
                true
            }
            Act::Delete { .. } | Act::Select { .. } => {
                panic!("{} has no such conditional write", table.name)
            }
        }
    }

    fn read(&self, plan: &Plan, values: &[Value]) -> Vec<Vec<u8>> {
        let Act::Select {
            columns,
            conditions,
            limit,
        } = &plan.act
        else {
            panic!("{} is written, not read", plan.table.name)
        };
        let Some(table) = self.tables.get(&plan.table.name) else {
            return Vec::new();
        };
        let limit = limit.map_or(usize::MAX, |place| {
            usize::try_from(values[place].int()).unwrap_or(0)
        });
        let partitions: Vec<(&PartitionKey, &Partition)> =
            match partition_of(&plan.table, conditions, values) {
                Some(key) => table.partitions.get_key_value(&key).into_iter().collect(),
                None => table.by_token(conditions, values),
            };
        let mut rows = Vec::new();
        for (key, partition) in partitions {
            for (clustering, row) in &partition.rows {
                if rows.len() == limit {
                    return rows;
                }
                if row.is_live(self.now) && is_within(&plan.table, clustering, conditions, values) {
                    rows.push(self.encode(&plan.table, columns, key, clustering, row));
                }
            }
        }
        rows
    }

    fn encode(
        &self,
        table: &TableDef,
        columns: &[usize],
        key: &PartitionKey,
        clustering: &ClusteringKey,
        row: &Row,
    ) -> Vec<u8> {
        let mut encoded = Vec::new();
        for column in columns {
            let place_in = |keys: &[usize]| keys.iter().position(|key| key == column);
            if let Some(place) = place_in(&table.partition) {
                put(&mut encoded, Some(&key[place]));
            } else if let Some(place) = place_in(&table.clustering) {
                let mut value = Vec::new();
                clustering[place].put(&mut value);
                put(&mut encoded, Some(&value));
            } else {
                let cell = row.cells.get(*column).and_then(Option::as_ref);
                let value = cell.and_then(|cell| cell.live(self.now));
                put(&mut encoded, value.map(|value| &**value));
            }
        }
        encoded
    }
}

impl Table {
    /// The partitions whose tokens are as asked for, in the order of tokens.
    fn by_token(
        &self,
        conditions: &[Condition],
        values: &[Value],
    ) -> Vec<(&PartitionKey, &Partition)> {
        let is_asked_for = |token: i64| {
            conditions.iter().all(|condition| match condition {
                Condition::Token(comparison, place) => {
                    comparison.holds(&token, &values[*place].bigint())
                }
                Condition::Compare(..) | Condition::In(..) | Condition::Beyond(..) => true,
            })
        };
        let mut found: Vec<_> = self
            .partitions
            .iter()
            .map(|(key, partition)| (token_of(key), key, partition))
            .filter(|(token, ..)| is_asked_for(*token))
            .collect();
        found.sort_by_key(|(token, key, _)| (*token, *key));
        found
            .into_iter()
            .map(|(_, key, partition)| (key, partition))
            .collect()
    }
}

/// Spreads partitions over tokens; not as servers do, which nobody may rely on.
fn token_of(key: &PartitionKey) -> i64 {
    let mut bytes = Vec::new();
    for value in key.iter() {
        put(&mut bytes, Some(value));
    }
    xxh3_64(&bytes).cast_signed().max(i64::MIN + 1)
}

fn put(encoded: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        Some(value) => {
            // No value comes near 2 GiB.
            encoded.extend((value.len() as i32).to_be_bytes());
            encoded.extend(value);
        }
        None => encoded.extend((-1_i32).to_be_bytes()),
    }
}

/// Whether conditions admit a row of a partition that they admit.
fn is_within(
    table: &TableDef,
    clustering: &ClusteringKey,
    conditions: &[Condition],
    values: &[Value],
) -> bool {
    let place_of = |column: &usize| table.clustering.iter().position(|key| key == column);
    let ordered = |column: &usize, bytes: &[u8]| Ordered::of(&table.columns[*column].typ, bytes);
    conditions.iter().all(|condition| match condition {
        Condition::Token(..) => true,
        Condition::Compare(column, comparison, place) => place_of(column).is_none_or(|at| {
            comparison.holds(&clustering[at], &ordered(column, values[*place].bytes()))
        }),
        Condition::In(column, place) => place_of(column).is_none_or(|at| {
            let mut elements = values[*place].elements().into_iter();
            elements.any(|element| ordered(column, element) == clustering[at])
        }),
        Condition::Beyond(columns, places) => {
            let bound = columns.iter().zip(places);
            let bound: Vec<Ordered> = bound
                .map(|(column, place)| ordered(column, values[*place].bytes()))
                .collect();
            clustering[..bound.len()] > bound[..]
        }
    })
}

impl Comparison {
    fn holds<T: Ord>(self, found: &T, wanted: &T) -> bool {
        match self {
            Self::Equal => found == wanted,
            Self::Greater => found > wanted,
            Self::GreaterOrEqual => found >= wanted,
            Self::LessOrEqual => found <= wanted,
        }
    }
}
