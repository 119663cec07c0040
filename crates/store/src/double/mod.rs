//! A store in memory, under the same statements, codecs and batches as the servers: for simulations.
//!
//! True to what views rest on: a timestamp and, where asked for, an expiry of every cell; the newest write of a cell
//! wins, a tie by Cassandra's rules; null is a tombstone and unset leaves a cell alone; a row is there while a cell or
//! the mark of its insertion is; the rows of one unlogged batch arrive together; a partition deleted as of a timestamp
//! hides what is older, also what comes later. Conditional writes see what is stored at one moment.
//!
//! Not played: replicas that differ (whoever drives the [`Wire`] may answer from another [`Cluster`]), hints, read
//! repair, ballots, pages (every answer is whole), compaction, and CQL that this crate's statements do not use, which is
//! refused when prepared. Clocks stand still but for [`Cluster::set_now`].
//!
//! [`Cluster`] holds the contents, [`Request`] is what one statement or batch asks, and a [`Wire`] carries it: a
//! simulation decides when each arrives, whether at all, and whether the answer comes back.

mod cells;
mod cluster;
mod cql;
mod key;
mod plan;
mod request;
mod wire;

pub use cluster::{Cluster, StoredRow};
pub use key::RowKey;
pub use request::{Answer, Request, RowWrite};
pub use wire::{Direct, Lost, Wire};

pub(crate) use plan::Plan;
pub(crate) use wire::{Client, Page};
