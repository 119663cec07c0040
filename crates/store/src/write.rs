//! Groups the rows of one write step by table partition and sends each group as few requests.
//!
//! Requests are what costs: the server takes about 21 µs for one and 6 µs for each row in it. An unlogged batch of one
//! partition of one table is one mutation there, atomic and without a batch log. Groups run beside each other, the
//! batches of one group one after the other: so a partition has one write of a step in flight.

use std::{collections::BTreeMap, ops::AddAssign};

use futures::FutureExt;
use scylla::serialize::row::SerializeRow;

use crate::{
    error::StoreError,
    link::{Job, Link, Statement},
};

/// The most rows of one batch.
const MAX_BATCH_ROWS: usize = 100;

/// The most bytes of one batch, by estimate. A row above it goes alone.
const MAX_BATCH_BYTES: usize = 40 << 10;

/// What a write step sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Requests to the servers.
    pub requests: usize,
    /// Rows in them.
    pub rows: usize,
    /// Bytes in them, by estimate.
    pub bytes: usize,
    /// Rows left out because they would have expired by now: inbox copies only.
    pub expired: usize,
}

impl AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.expired += other.expired;
    }
}

impl std::iter::Sum for Written {
    fn sum<I: Iterator<Item = Self>>(steps: I) -> Self {
        let mut sum = Self::default();
        for step in steps {
            sum += step;
        }
        sum
    }
}

/// A row on its way into a table.
pub(crate) trait Writable: SerializeRow + Send + Sync {
    /// Names its table partition.
    type Partition: Ord + Send;

    /// Its table partition.
    fn partition(&self) -> Self::Partition;

    /// About how many bytes it takes on the wire.
    fn bytes(&self) -> usize;

    /// Names the row in errors.
    fn key(&self) -> String;
}

/// The jobs that write `rows` with `statement`.
pub(crate) fn write_jobs<'a, R: Writable + 'a>(
    link: &'a Link,
    statement: &'a Statement,
    rows: Vec<R>,
) -> Vec<Job<'a, Written>> {
    group(rows)
        .into_iter()
        .map(|batches| write_batches(link, statement, batches).boxed())
        .collect()
}

/// Writes the batches of one table partition, one after the other.
async fn write_batches<R: Writable>(
    link: &Link,
    statement: &Statement,
    batches: Vec<Vec<R>>,
) -> Result<Written, StoreError> {
    let mut written = Written::default();
    for batch in batches {
        match batch.as_slice() {
            [] => continue,
            [row] => link.write(statement, row, || row.key()).await?,
            [first, ..] => {
                let key = || format!("{} rows from {}", batch.len(), first.key());
                link.write_together(statement, &batch, key).await?;
            }
        }
        written += Written {
            requests: 1,
            rows: batch.len(),
            bytes: batch.iter().map(R::bytes).sum(),
            expired: 0,
        };
    }
    Ok(written)
}

/// The rows of each table partition, in the order given, cut into batches within the bounds.
fn group<R: Writable>(rows: Vec<R>) -> Vec<Vec<Vec<R>>> {
    let mut groups: BTreeMap<R::Partition, (Vec<Vec<R>>, usize)> = BTreeMap::new();
    for row in rows {
        let (batches, bytes) = groups.entry(row.partition()).or_default();
        let row_bytes = row.bytes();
        match batches.last_mut() {
            Some(batch)
                if batch.len() < MAX_BATCH_ROWS && *bytes + row_bytes <= MAX_BATCH_BYTES =>
            {
                *bytes += row_bytes;
                batch.push(row);
            }
            _ => {
                *bytes = row_bytes;
                batches.push(vec![row]);
            }
        }
    }
    groups.into_values().map(|(batches, _)| batches).collect()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};
    use scylla::SerializeRow;

    use super::*;

    #[derive(Debug, Clone, PartialEq, SerializeRow)]
    struct Row {
        partition: i64,
        number: i64,
        bytes: i64,
    }

    impl Writable for Row {
        type Partition = i64;

        fn partition(&self) -> i64 {
            self.partition
        }

        fn bytes(&self) -> usize {
            self.bytes as usize
        }

        fn key(&self) -> String {
            self.number.to_string()
        }
    }

    fn rows(sizes: &[(i64, i64)]) -> Vec<Row> {
        (0..)
            .zip(sizes)
            .map(|(number, (partition, bytes))| Row {
                partition: *partition,
                number,
                bytes: *bytes,
            })
            .collect()
    }

    /// The numbers of rows in each batch of each group.
    fn shape(sizes: &[(i64, i64)]) -> Vec<Vec<usize>> {
        group(rows(sizes))
            .iter()
            .map(|batches| batches.iter().map(Vec::len).collect())
            .collect()
    }

    #[test]
    fn rows_of_one_partition_travel_together() {
        assert_eq!(
            shape(&[(1, 100), (2, 100), (1, 100), (3, 100), (1, 100)]),
            [vec![3], vec![1], vec![1]]
        );
        assert_eq!(shape(&[]), Vec::<Vec<usize>>::new());
    }

    #[test]
    fn a_batch_ends_at_a_hundred_rows() {
        assert_eq!(shape(&[(1, 10); 250]), [vec![100, 100, 50]]);
    }

    #[test]
    fn a_batch_ends_before_its_bytes_exceed_the_bound_and_a_large_row_goes_alone() {
        let kib = |kib: i64| (1, kib << 10);
        assert_eq!(
            shape(&[kib(20), kib(20), kib(1), kib(60), kib(1), kib(39), kib(1)]),
            [vec![2, 1, 1, 2, 1]]
        );
    }

    proptest! {
        #[test]
        fn every_row_is_written_once_in_order_within_the_bounds(
            sizes in vec((0..5_i64, 0..60_000_i64), 0..400)
        ) {
            let rows = rows(&sizes);
            let mut seen = Vec::new();
            for batches in group(rows.clone()) {
                let partition = batches[0][0].partition;
                let mut numbers = Vec::new();
                for batch in batches {
                    let bytes: usize = batch.iter().map(Writable::bytes).sum();
                    prop_assert!(batch.len() <= MAX_BATCH_ROWS);
                    prop_assert!(bytes <= MAX_BATCH_BYTES || batch.len() == 1);
                    prop_assert!(batch.iter().all(|row| row.partition == partition));
                    numbers.extend(batch.into_iter().map(|row| row.number));
                }
                prop_assert!(numbers.is_sorted());
                seen.extend(numbers);
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..sizes.len() as i64).collect::<Vec<_>>());
        }
    }
}
