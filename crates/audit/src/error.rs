//! Why an audit could not be done. What it finds is no error but a [`Report`](crate::Report).

use tidemark_event::{ConversationId, Offset, Partition, UnknownSchema};
use tidemark_fold::ViewName;
use tidemark_store::{OpenError, StoreError};

use crate::LogError;

/// Why an audit could not be done.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// No log is recorded: `setup` has not run.
    #[error("no log is recorded in the store: run `tidemark setup`")]
    NoLog,
    /// No generation of the view is active: `setup` has not run.
    #[error("view {view} has no active generation: run `tidemark setup`")]
    NoGeneration {
        /// The view.
        view: ViewName,
    },
    /// The generation cannot be read by this release.
    #[error("cannot open view {view}")]
    Open {
        /// The view.
        view: ViewName,
        /// Why.
        source: OpenError,
    },
    /// The store could not be read, or holds what this release cannot read.
    #[error("cannot read the store")]
    Store(#[from] StoreError),
    /// The log could not be read.
    #[error("cannot read the log")]
    Log(#[from] LogError),
    /// Not all of the log could be folded.
    #[error("cannot fold the log")]
    Fold(#[from] FoldError),
}

/// Why a record could not be folded.
#[derive(Debug, thiserror::Error)]
pub enum FoldError {
    /// A view has gone past a record that this release does not know.
    #[error(
        "partition {partition}: the checkpoint of {view} is beyond offset {offset}, where a record is of a schema \
         that this release does not know: audit with the release that folded it"
    )]
    UnknownSchema {
        /// The partition.
        partition: Partition,
        /// The record.
        offset: Offset,
        /// The view.
        view: ViewName,
        /// Which schema.
        source: UnknownSchema,
    },
    /// The fold asked for what it had not made: a fault of the fold or of the audit, not of what is audited.
    #[error("partition {partition}, {view}, conversation {conversation}, offset {offset}: {what}")]
    Stopped {
        /// The partition.
        partition: Partition,
        /// The view.
        view: ViewName,
        /// The conversation.
        conversation: ConversationId,
        /// The record.
        offset: Offset,
        /// What the fold says.
        what: String,
    },
}
