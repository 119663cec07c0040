//! The worker: consumes the partitions of the log that its group assigns it, folds batches of records, and flushes
//! them to one view.
//!
//! A record's way: `consumer` (Kafka) → `batcher` → [`Projection`] (decode, load, fold, flush, checkpoint). Everything
//! that correctness rests on is in [`Projection`] and [`Resume`], which know neither Kafka nor a clock that decides.
//! Knows the fold and the store; must not know the gateway.

mod batcher;
mod consumer;
mod dead_letter;
pub mod http;
mod log_source;
pub mod metrics;
mod owner;
mod partition;
mod poll;
mod project;
mod projection;
mod record;
mod resume;
mod retry;
mod settings;
mod status;
mod view_store;
mod worker;

pub use dead_letter::{DeadLetter, DeadLetterError, DeadLetterTopic, DeadLetters};
pub use log_source::{
    BoundsError, GroupEvent, LogSource, OutOfRange, PartitionStatistics, Received, RecordQueue,
};
pub use owner::Owner;
pub use project::{StartError, project};
pub use projection::{BatchReport, ProjectError, Projection};
pub use record::RawRecord;
pub use resume::{FoundRecord, Resume, ResumeError};
pub use retry::Attempts;
pub use settings::{BatchSettings, GroupProtocol, WorkerSettings};
pub use status::{PartitionStatus, Readiness, Status, Totals};
pub use view_store::{KeepRefusals, ViewStore, Wanted};
pub use worker::{Worker, WorkerError};
