//! How a view's own rows and pieces lie in its tables: what the projector's steps need to know of a view.

use std::{collections::BTreeMap, fmt::Debug};

use futures::future::BoxFuture;
use tidemark_event::{ConversationId, Partition};
use tidemark_fold::{
    Changes, Need, Supply, View, inbox::Inbox, roaming::Roaming, sessions::Sessions,
};

use crate::{
    error::StoreError,
    generation::Generation,
    link::{Job, Link},
    schema::Names,
    write::Written,
};

/// The most keys that one read names. ScyllaDB's default bound on them is 100.
pub(crate) const MAX_IN: usize = 100;

/// A part of a conversation that a view's fold asks for.
pub type NeedOf<V> = Need<<V as View>::RowKey, <V as View>::PieceKey>;

/// Parts of conversations, as the store holds them.
pub type Loaded<V> = Vec<(ConversationId, Supply<V>)>;

/// A view that the store has tables for: roaming, sessions, inbox.
///
/// The methods are for [`Generation`], which puts them in order.
pub trait StoredView: View + sealed::Sealed {
    /// The prepared statements of the view's own tables.
    type Tables: Debug + Send + Sync;

    /// Prepares the statements of one generation's own tables.
    fn prepare<'a>(
        link: &'a Link,
        names: &'a Names,
    ) -> BoxFuture<'a, Result<Self::Tables, StoreError>>;

    /// The reads that answer the need of these rows, each of them once.
    fn row_loads(
        generation: &Generation<Self>,
        partition: Partition,
        keys: Vec<(ConversationId, Self::RowKey)>,
    ) -> Vec<Job<'_, Loaded<Self>>>;

    /// The writes of the changed rows.
    ///
    /// # Errors
    /// [`StoreError::Unwritable`]: a row is none that its table can hold.
    fn row_writes<'a>(
        generation: &'a Generation<Self>,
        partition: Partition,
        changes: &'a [(ConversationId, Changes<Self>)],
    ) -> Result<Vec<Job<'a, Written>>, StoreError>;

    /// The reads that answer the need of these pieces, each of them once.
    fn piece_loads(
        generation: &Generation<Self>,
        keys: Vec<(ConversationId, Self::PieceKey)>,
    ) -> Vec<Job<'_, Loaded<Self>>>;

    /// The writes of the changed pieces.
    ///
    /// # Errors
    /// [`StoreError::Unwritable`]: a piece is none that its table can hold.
    fn piece_writes<'a>(
        generation: &'a Generation<Self>,
        changes: &'a [(ConversationId, Changes<Self>)],
    ) -> Result<Vec<Job<'a, Written>>, StoreError>;
}

mod sealed {
    /// Only this crate's views are stored.
    pub trait Sealed {}
}

impl sealed::Sealed for Roaming {}
impl sealed::Sealed for Sessions {}
impl sealed::Sealed for Inbox {}

/// Groups keys by the table partition they are in, at most [`MAX_IN`] together.
pub(crate) fn by_partition<P: Ord + Clone, K>(
    keys: impl IntoIterator<Item = (P, K)>,
) -> Vec<(P, Vec<K>)> {
    let mut groups: BTreeMap<P, Vec<Vec<K>>> = BTreeMap::new();
    for (partition, key) in keys {
        let reads = groups.entry(partition).or_default();
        match reads.last_mut() {
            Some(read) if read.len() < MAX_IN => read.push(key),
            _ => reads.push(vec![key]),
        }
    }
    groups
        .into_iter()
        .flat_map(|(partition, reads)| reads.into_iter().map(move |read| (partition.clone(), read)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_names_keys_of_one_partition_and_no_more_than_a_server_takes() {
        let keys = (0..350).map(|key| (key % 2, key));
        let reads = by_partition(keys);
        let shape: Vec<(i32, usize)> = reads
            .iter()
            .map(|(partition, keys)| (*partition, keys.len()))
            .collect();
        assert_eq!(shape, [(0, 100), (0, 75), (1, 100), (1, 75)]);
        for (partition, keys) in reads {
            assert!(keys.iter().all(|key| key % 2 == partition));
        }
    }
}
