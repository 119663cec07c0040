//! The audit: folds the log by itself and holds everything that the views have stored against it.
//!
//! Two questions are asked of each partition of the log. *Is each stored row what the log makes it?* The log is read
//! from its first record and folded by the views' own folds, with no state but what they make; each stored row, piece
//! and head is compared as of its own applied offset, since workers write while the audit reads. *Does what is stored
//! contradict itself?* Without any fold, by counting in what is stored ([`Invariant`]).
//!
//! # Why no alarm is false while workers run
//! Reading goes in one order: checkpoints; session rows; heads; members and places; messages and copies; pieces; the
//! log's end; the log.
//! - What a checkpoint promises was stored before it (rule 4), so it is there whenever it is read later: what is
//!   missing or older is wrong.
//! - Whatever was stored when it was read comes from a record below the log's end as it was asked for afterwards: so
//!   the fold comes by every version that may be stored. What it never makes is wrong.
//! - A head is written after the rows and pieces that it stands for, so what is read after a head shows at least what
//!   the head shows. What an invariant compares that is not known to be of one moment is passed over, and counted.
//! - A dedupe piece is deleted once it has left the window. Ids are compared in those pieces only that are inside the
//!   window still at the end of the log.
//! - A copy expires by the clock. Around its expiry it may be there or not, by an hour for clocks that differ.
//!
//! # What is not looked at
//! Refusals, which expire. Dead letters. Dedupe pieces and blocks that no head names. Which bucket a message is in.
//! A value that the store's own checks refuse ends the audit with an error that names the row: the rest of its range
//! of the table cannot be read.
//!
//! [`audit`] reads Kafka and the store; [`PartitionAudit`] is all of it that decides, on plain data.

mod audit;
mod compare;
mod conversation;
mod error;
mod findings;
mod invariants;
mod log;
mod partition;
mod progress;
mod report;
mod scan;
mod scope;
mod shelf;
mod tracked;
mod view;

pub use audit::{AuditSettings, audit};
pub use error::{AuditError, FoldError};
pub use log::{LogError, LogReader};
pub use partition::{PartitionAudit, PartitionReport, RawRecord};
pub use progress::{Progress, Silent};
pub use report::{
    Compared, Difference, FieldDifference, Invariant, InvariantReport, Records, Report,
    UnknownRecord, ViewReport, What,
};
pub use scope::Scope;
pub use shelf::{Misplaced, Seen, Shelf, Shelves, StoredConversation};
