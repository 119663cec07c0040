//! Cells, rows and partitions, and which of two writes wins.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use super::key::ClusteringKey;

/// What is stored in a column of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) timestamp: i64,
    /// When it is gone, in milliseconds since 1970; never where there is none.
    pub(super) expires: Option<i64>,
    /// None is a tombstone.
    pub(super) value: Option<Arc<[u8]>>,
}

impl Cell {
    /// Whether this one is kept of the two. The rules for a tie are Cassandra's: a cell that ends wins over one that
    /// does not, a tombstone over one that expires, the later end over the earlier, the greater value over the lesser.
    fn wins_over(&self, other: &Self) -> bool {
        let rank = |cell: &Self| (cell.ends(), cell.value.is_none(), cell.expires);
        self.timestamp
            .cmp(&other.timestamp)
            .then_with(|| rank(self).cmp(&rank(other)))
            .then_with(|| self.value.cmp(&other.value))
            != Ordering::Less
    }

    fn ends(&self) -> bool {
        self.value.is_none() || self.expires.is_some()
    }

    /// The value, where it is there at `now`.
    pub(super) fn live(&self, now: i64) -> Option<&Arc<[u8]>> {
        let is_expired = self.expires.is_some_and(|expires| expires <= now);
        self.value.as_ref().filter(|_| !is_expired)
    }
}

/// A row: the mark that it was inserted, and its cells by column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) marker: Option<Cell>,
    pub(super) cells: Vec<Option<Cell>>,
}

impl Row {
    /// Whether it is there at `now`.
    pub(super) fn is_live(&self, now: i64) -> bool {
        let mut cells = self.cells.iter().flatten().chain(&self.marker);
        cells.any(|cell| cell.live(now).is_some())
    }

    /// The newest timestamp in it.
    pub(super) fn newest(&self) -> Option<i64> {
        let cells = self.cells.iter().flatten().chain(&self.marker);
        cells.map(|cell| cell.timestamp).max()
    }

    fn drop_older(&mut self, deleted: i64) {
        for cell in self.cells.iter_mut().chain([&mut self.marker]) {
            if cell.as_ref().is_some_and(|cell| cell.timestamp <= deleted) {
                *cell = None;
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.marker.is_none() && self.cells.iter().all(Option::is_none)
    }
}

/// A partition of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Partition {
    /// Everything up to this timestamp is deleted.
    pub(super) deleted: Option<i64>,
    pub(super) rows: BTreeMap<ClusteringKey, Row>,
}

impl Partition {
    /// Writes the cells of a row, and the mark that it was inserted. Those that are older than what is there change
    /// nothing.
    pub(super) fn upsert(
        &mut self,
        key: &ClusteringKey,
        columns: usize,
        marker: Cell,
        cells: impl IntoIterator<Item = (usize, Cell)>,
    ) {
        if self
            .deleted
            .is_some_and(|deleted| marker.timestamp <= deleted)
        {
            return;
        }
        let row = self.rows.entry(key.clone()).or_default();
        row.cells.resize(columns, None);
        put(&mut row.marker, marker);
        for (column, cell) in cells {
            put(&mut row.cells[column], cell);
        }
    }

    pub(super) fn delete(&mut self, timestamp: i64) {
        if self.deleted.is_some_and(|deleted| timestamp <= deleted) {
            return;
        }
        self.deleted = Some(timestamp);
        self.rows.retain(|_, row| {
            row.drop_older(timestamp);
            !row.is_empty()
        });
    }
}

fn put(stored: &mut Option<Cell>, cell: Cell) {
    match stored {
        Some(stored) if !cell.wins_over(stored) => {}
        _ => *stored = Some(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(timestamp: i64, value: Option<&str>, expires: Option<i64>) -> Cell {
        Cell {
            timestamp,
            expires,
            value: value.map(|value| value.as_bytes().into()),
        }
    }

    /// Each wins over those before it, in whatever order the two arrive.
    #[test]
    fn the_newest_write_wins_and_ties_are_broken_as_cassandra_does() {
        let ascending = [
            cell(1, Some("z"), None),
            cell(2, Some("a"), None),
            cell(2, Some("b"), None),
            cell(2, Some("a"), Some(100)),
            cell(2, Some("a"), Some(200)),
            cell(2, None, None),
            cell(3, Some("a"), None),
        ];
        for (place, greater) in ascending.iter().enumerate() {
            for lesser in &ascending[..place] {
                for pair in [[lesser, greater], [greater, lesser]] {
                    let mut stored = None;
                    pair.into_iter()
                        .for_each(|cell| put(&mut stored, cell.clone()));
                    assert_eq!(stored.as_ref(), Some(greater));
                }
            }
        }
    }

    #[test]
    fn a_deleted_partition_takes_no_older_write() {
        let mut partition = Partition::default();
        let key: ClusteringKey = Vec::new().into();
        let marker = |timestamp| cell(timestamp, Some(""), None);
        let write = |partition: &mut Partition, timestamp| {
            let value = [(0, cell(timestamp, Some("a"), None))];
            partition.upsert(&key, 1, marker(timestamp), value);
        };
        write(&mut partition, 3);
        partition.delete(5);
        write(&mut partition, 5);
        assert!(partition.rows.is_empty());
        write(&mut partition, 6);
        assert_eq!(partition.rows[&key].newest(), Some(6));
    }
}
