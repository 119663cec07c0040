//! The views in ScyllaDB: schema, generations, checkpoints, row codecs and queries.
//!
//! Knows the folds' rows and pieces and how they lie in tables; knows no Kafka and decides nothing. Tables are the
//! files of `schemas/cql`; each has a module here with its statements, its row and how that is read and written.
//!
//! Everything is read and written at LOCAL_QUORUM, by prepared statements that may be repeated. Every cell of a view,
//! its state and its checkpoints is stamped with an offset ([`WriteTimestamp`]), so that of two writers the one that
//! has folded more wins, whoever comes last. Conditional writes are operators' acts only: [`Store::setup`],
//! [`Store::activate`] and the like.
//!
//! CQL is what both ScyllaDB and Apache Cassandra have.

mod checkpoints;
mod column;
mod connect;
mod dedupe;
#[cfg(feature = "double")]
pub mod double;
mod error;
mod generation;
mod generations;
mod heads;
mod inbox;
mod layout;
mod link;
mod log;
mod members;
mod message;
mod roaming;
#[cfg(test)]
mod sample;
mod scan;
mod schema;
mod servers;
mod sessions;
mod setup;
mod store;
mod timestamp;
mod ttl;
mod write;

pub use checkpoints::{Checkpoint, LastRecord};
pub use connect::{ConnectError, Secret, StoreSettings};
pub use error::{RequestError, StoreError};
pub use generation::Generation;
pub use generations::{FoldVersion, GenerationNo, GenerationState, RecordedGeneration};
pub use inbox::{CopyOf, PlaceOf};
pub use layout::{Loaded, NeedOf, StoredView};
pub use log::RecordedLog;
pub use members::MemberOf;
pub use message::MessageOf;
pub use roaming::{Order, Refusal};
pub use scan::TokenRange;
pub use sessions::SessionOf;
pub use setup::{CreateError, DropError, Recorded, SetupError, SetupSettings};
pub use store::{Activation, OpenError, Store};
pub use timestamp::WriteTimestamp;
pub use write::Written;
