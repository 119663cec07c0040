//! Keys of rows, in the order that a partition has them in.

use std::{fmt, sync::Arc};

use scylla::frame::response::result::{ColumnType, NativeType};

use super::cql::TableDef;

/// The values of a partition key, as they are on the wire.
pub(super) type PartitionKey = Arc<[Arc<[u8]>]>;

/// The values of a clustering key, so that they compare as CQL orders them.
pub(super) type ClusteringKey = Arc<[Ordered]>;

/// One value of a clustering key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Ordered {
    Int(i32),
    BigInt(i64),
    Bytes(Arc<[u8]>),
    /// By version first.
    Uuid(u8, [u8; 16]),
}

impl Ordered {
    pub(super) fn of(typ: &ColumnType<'_>, bytes: &[u8]) -> Self {
        match (typ, bytes.len()) {
            (ColumnType::Native(NativeType::Int), 4) => Self::Int(i32::from_be_bytes(array(bytes))),
            (ColumnType::Native(NativeType::BigInt | NativeType::Timestamp), 8) => {
                Self::BigInt(i64::from_be_bytes(array(bytes)))
            }
            (ColumnType::Native(NativeType::Uuid), 16) => {
                let uuid: [u8; 16] = array(bytes);
                Self::Uuid(uuid[6] >> 4, uuid)
            }
            _ => Self::Bytes(bytes.into()),
        }
    }

    /// The value as it is on the wire.
    pub(super) fn put(&self, into: &mut Vec<u8>) {
        match self {
            Self::Int(number) => into.extend(number.to_be_bytes()),
            Self::BigInt(number) => into.extend(number.to_be_bytes()),
            Self::Bytes(bytes) => into.extend(bytes.iter()),
            Self::Uuid(_, uuid) => into.extend(uuid),
        }
    }
}

/// The bytes as an array of their length, which the caller has looked at.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

impl fmt::Display for Ordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::BigInt(number) => number.fmt(f),
            Self::Bytes(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Self::Uuid(_, uuid) => uuid::Uuid::from_bytes(*uuid).fmt(f),
        }
    }
}

/// Names a row, or a whole partition where there is no clustering key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    pub(super) table: Arc<str>,
    pub(super) partition: PartitionKey,
    pub(super) clustering: Option<ClusteringKey>,
}

impl RowKey {
    pub(super) fn of(
        table: &TableDef,
        partition: PartitionKey,
        clustering: Option<ClusteringKey>,
    ) -> Self {
        Self {
            table: table.short_name().into(),
            partition,
            clustering,
        }
    }

    /// The table, without its keyspace.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The partition that the row is in.
    pub fn partition(&self) -> Self {
        Self {
            clustering: None,
            ..self.clone()
        }
    }

    /// The first clustering value, where it is an int.
    pub fn clustering_int(&self) -> Option<i32> {
        match self.clustering.as_deref() {
            Some([Ordered::Int(number), ..]) => Some(*number),
            _ => None,
        }
    }
}

impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [", self.table)?;
        for (place, value) in self.partition.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            match std::str::from_utf8(value) {
                Ok(text) if text.chars().all(|char| !char.is_control()) => {
                    write!(f, "{comma}{text}")?;
                }
                _ => {
                    let number = value.iter().fold(0_u128, |number, byte| {
                        number.wrapping_shl(8) | u128::from(*byte)
                    });
                    write!(f, "{comma}{number}")?;
                }
            }
        }
        f.write_str("]")?;
        for value in self.clustering.iter().flat_map(|values| values.iter()) {
            write!(f, " {value}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
