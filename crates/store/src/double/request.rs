//! What one statement or one batch asks of the store: something that can be kept, sent late, and sent again.

use std::{fmt, hash::Hasher, sync::Arc};

use scylla::serialize::{
    SerializationError,
    row::{RowSerializationContext, SerializeRow},
    writers::RowWriter,
};
use xxhash_rust::xxh3::Xxh3;

use super::{
    cluster::Cluster,
    cql::TableDef,
    key::{ClusteringKey, Ordered, PartitionKey, RowKey},
    plan::{Act, Comparison, Condition, Plan},
};

/// A request to the store. A clone is the same request; to serve it twice does what two deliveries do.
#[derive(Debug, Clone)]
pub struct Request(pub(super) Arc<Asked>);

#[derive(Debug)]
pub(super) enum Asked {
    Read(Arc<Plan>, Vec<Value>),
    /// Rows of one partition, written together.
    Write(Vec<Mutation>),
    If(Arc<Plan>, Vec<Value>),
}

/// What the store answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer(pub(super) Answered);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answered {
    /// Each as it is on the wire.
    Rows(Vec<Vec<u8>>),
    Written,
    Applied(bool),
}

/// A bound value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Set(Arc<[u8]>),
    Null,
    Unset,
}

/// A change of one row or partition.
#[derive(Debug)]
pub(super) struct Mutation {
    pub(super) table: Arc<TableDef>,
    pub(super) partition: PartitionKey,
    pub(super) timestamp: Option<i64>,
    pub(super) change: Change,
}

#[derive(Debug)]
pub(super) enum Change {
    Upsert {
        clustering: ClusteringKey,
        /// In seconds; 0 is for ever.
        ttl: i32,
        /// By column; None is null. What is unset is not here.
        cells: Vec<(usize, Option<Arc<[u8]>>)>,
    },
    Delete,
}

/// One row, or one partition, that a request writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowWrite {
    /// Which.
    pub key: RowKey,
    /// What it is written with; 0 where the store's clock decides.
    pub timestamp: i64,
    /// Of every column that is written and its value, null being one. Its expiry is left out.
    pub digest: u64,
    /// The whole partition is deleted.
    pub is_delete: bool,
}

impl fmt::Display for RowWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

impl Request {
    pub(super) fn read(
        plan: &Arc<Plan>,
        values: &(impl SerializeRow + ?Sized),
    ) -> Result<Self, SerializationError> {
        Ok(Self(Arc::new(Asked::Read(
            plan.clone(),
            bind(plan, values)?,
        ))))
    }

    pub(super) fn write<'v, R: SerializeRow + 'v>(
        plan: &Arc<Plan>,
        rows: impl IntoIterator<Item = &'v R>,
    ) -> Result<Self, SerializationError> {
        let mut mutations = Vec::new();
        for row in rows {
            mutations.push(Mutation::of(plan, bind(plan, row)?));
        }
        Ok(Self(Arc::new(Asked::Write(mutations))))
    }

    pub(super) fn write_if(
        plan: &Arc<Plan>,
        values: &(impl SerializeRow + ?Sized),
    ) -> Result<Self, SerializationError> {
        Ok(Self(Arc::new(Asked::If(plan.clone(), bind(plan, values)?))))
    }

    /// Whether it changes anything.
    pub fn is_write(&self) -> bool {
        match &*self.0 {
            Asked::Read(..) => false,
            Asked::Write(_) | Asked::If(..) => true,
        }
    }

    /// The table, without its keyspace.
    pub fn table(&self) -> &str {
        match &*self.0 {
            Asked::Read(plan, _) | Asked::If(plan, _) => plan.table.short_name(),
            Asked::Write(mutations) => mutations
                .first()
                .map_or("", |first| first.table.short_name()),
        }
    }

    /// What it writes; of a conditional write nothing.
    pub fn rows(&self) -> Vec<RowWrite> {
        match &*self.0 {
            Asked::Write(mutations) => mutations.iter().map(Mutation::row).collect(),
            Asked::Read(..) | Asked::If(..) => Vec::new(),
        }
    }

    /// Serves it, all at one moment.
    pub fn apply(&self, cluster: &Cluster) -> Answer {
        cluster.serve(&self.0)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Asked::Read(plan, _) => write!(f, "read {}", plan.table.short_name()),
            Asked::If(plan, _) => write!(f, "write {} if", plan.table.short_name()),
            Asked::Write(mutations) => {
                f.write_str("write")?;
                for mutation in mutations {
                    let RowWrite { key, timestamp, .. } = mutation.row();
                    write!(f, " {key} at {timestamp},")?;
                }
                Ok(())
            }
        }
    }
}

/// The values of a row, as the driver would send them.
fn bind(
    plan: &Plan,
    values: &(impl SerializeRow + ?Sized),
) -> Result<Vec<Value>, SerializationError> {
    let mut bytes = Vec::new();
    let context = RowSerializationContext::from_specs(&plan.binds);
    values.serialize(&context, &mut RowWriter::new(&mut bytes))?;
    let mut values = Vec::with_capacity(plan.binds.len());
    let mut rest = bytes.as_slice();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (value, after) = match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) => {
                let (value, after) = after.split_at(length.min(after.len()));
                (Value::Set(value.into()), after)
            }
            Err(_) if *length == (-1_i32).to_be_bytes() => (Value::Null, after),
            Err(_) => (Value::Unset, after),
        };
        values.push(value);
        rest = after;
    }
    Ok(values)
}

impl Value {
    /// The bytes of a value that must be there: part of a key, a timestamp.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Set(bytes) => bytes,
            Self::Null | Self::Unset => &[],
        }
    }

    pub(super) fn bigint(&self) -> i64 {
        self.bytes().try_into().map_or(0, i64::from_be_bytes)
    }

    pub(super) fn int(&self) -> i32 {
        self.bytes().try_into().map_or(0, i32::from_be_bytes)
    }

    /// The elements of a list.
    pub(super) fn elements(&self) -> Vec<&[u8]> {
        let mut elements = Vec::new();
        let Some((_, mut rest)) = self.bytes().split_first_chunk::<4>() else {
            return elements;
        };
        while let Some((length, after)) = rest.split_first_chunk() {
            let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
            let (element, after) = after.split_at(length.min(after.len()));
            elements.push(element);
            rest = after;
        }
        elements
    }
}

impl Mutation {
    /// What an INSERT or DELETE does with these values.
    fn of(plan: &Plan, values: Vec<Value>) -> Self {
        let table = plan.table.clone();
        match &plan.act {
            Act::Insert {
                columns,
                timestamp,
                ttl,
                is_conditional,
            } => {
                assert!(
                    !is_conditional,
                    "{}: whether it applied is to be heard",
                    table.name
                );
                let (partition, clustering) = insert_key(&table, columns, &values);
                let cells = columns.iter().zip(&values).filter_map(|(column, value)| {
                    let is_key = table.is_key(*column);
                    match value {
                        _ if is_key => None,
                        Value::Set(value) => Some((*column, Some(value.clone()))),
                        Value::Null => Some((*column, None)),
                        Value::Unset => None,
                    }
                });
                Self {
                    partition,
                    timestamp: timestamp.map(|place| values[place].bigint()),
                    change: Change::Upsert {
                        clustering,
                        ttl: ttl.map_or(0, |place| values[place].int()),
                        cells: cells.collect(),
                    },
                    table,
                }
            }
            Act::Delete { timestamp, key } => Self {
                partition: partition_of(&table, key, &values).unwrap_or_default(),
                timestamp: timestamp.map(|place| values[place].bigint()),
                change: Change::Delete,
                table,
            },
            Act::Update { .. } | Act::Select { .. } => {
                panic!("{} is no plain write", table.name)
            }
        }
    }

    pub(super) fn row(&self) -> RowWrite {
        let (clustering, digest) = match &self.change {
            Change::Upsert {
                clustering, cells, ..
            } => {
                let cells = cells
                    .iter()
                    .map(|(column, value)| (*column, value.as_deref()));
                (Some(clustering.clone()), digest_of(cells))
            }
            Change::Delete => (None, 0),
        };
        RowWrite {
            key: RowKey::of(&self.table, self.partition.clone(), clustering),
            timestamp: self.timestamp.unwrap_or(0),
            digest,
            is_delete: matches!(self.change, Change::Delete),
        }
    }
}

/// A digest of columns and their values; None is null.
pub(super) fn digest_of<'c>(cells: impl Iterator<Item = (usize, Option<&'c [u8]>)>) -> u64 {
    let mut hash = Xxh3::new();
    for (column, value) in cells {
        hash.write_usize(column);
        hash.write_u8(u8::from(value.is_some()));
        if let Some(value) = value {
            hash.write_usize(value.len());
            hash.update(value);
        }
    }
    hash.finish()
}

/// The key of the row that an INSERT writes.
pub(super) fn insert_key(
    table: &TableDef,
    columns: &[usize],
    values: &[Value],
) -> (PartitionKey, ClusteringKey) {
    let value = |key: &usize| {
        let place = columns.iter().position(|column| column == key);
        place.map_or(&Value::Unset, |place| &values[place])
    };
    let partition = table.partition.iter().map(|key| value(key).bytes().into());
    let clustering = table
        .clustering
        .iter()
        .map(|key| Ordered::of(&table.columns[*key].typ, value(key).bytes()));
    (partition.collect(), clustering.collect())
}

/// The partition that conditions name, if they name one.
pub(super) fn partition_of(
    table: &TableDef,
    conditions: &[Condition],
    values: &[Value],
) -> Option<PartitionKey> {
    let value = |key: &usize| {
        conditions.iter().find_map(|condition| match condition {
            Condition::Compare(column, Comparison::Equal, place) if column == key => {
                Some(values[*place].bytes().into())
            }
            _ => None,
        })
    };
    table.partition.iter().map(value).collect()
}
