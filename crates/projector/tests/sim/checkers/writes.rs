//! Verifies that each row that is written, by whomever, is byte for byte what an undisturbed run writes with the same
//! timestamp, and that what is stored of a row never gets older.
//!
//! A checkpoint is told by the log alone: the last record below it, its fingerprint, the log time as of it. A dedupe
//! piece may be deleted when an undisturbed run has deleted it or later, never sooner. Not verified: that a row is
//! written at all; `order` and `contents` do that.

use tidemark_store::double::{Cluster, RowWrite};

use crate::{
    reference::{Reference, is_checkpoints},
    workload::Workload,
};

pub(super) fn check(
    row: &RowWrite,
    before: Option<i64>,
    cluster: &Cluster,
    reference: &Reference,
    _workload: &Workload,
) {
    if is_checkpoints(row.key.table()) {
        return;
    }
    if row.is_delete {
        let earliest = reference.deletes.get(&row.key);
        assert!(
            earliest.is_some_and(|earliest| *earliest <= row.timestamp),
            "{row} is deleted at {}, sooner than it may be: {earliest:?}",
            row.timestamp
        );
        return;
    }
    match reference.writes.get(&(row.key.clone(), row.timestamp)) {
        Some(digest) => assert_eq!(
            *digest, row.digest,
            "{row} is not what an undisturbed run writes with timestamp {}",
            row.timestamp
        ),
        None => panic!(
            "{row}: an undisturbed run writes no such row with timestamp {}",
            row.timestamp
        ),
    }
    let after = cluster.newest(&row.key);
    assert!(
        after >= before,
        "{row} goes back from {before:?} to {after:?}"
    );
}
