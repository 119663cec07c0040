//! What can go wrong with a request to the store.

use scylla::errors::{
    ConnectionPoolError, DbError, ExecutionError, MetadataError, PrepareError, RequestAttemptError,
    SchemaAgreementError,
};

use crate::column::BadColumn;

/// Why the store could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The server, or the way to it, failed.
    #[error("could not {act} {table}, {key}")]
    Request {
        /// What was asked: `read`, `write`, `prepare a statement on` …
        act: &'static str,
        /// The table, with its keyspace.
        table: String,
        /// Which rows.
        key: String,
        /// What the driver says.
        #[source]
        source: Box<RequestError>,
    },
    /// A stored row holds what no fold has written.
    #[error("{table} is damaged, {key}: column {column} {problem}")]
    Damaged {
        /// The table, with its keyspace.
        table: String,
        /// Which row.
        key: String,
        /// Its column.
        column: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// A row to be written holds what its table cannot: a fault of the fold, not of the store.
    #[error("{table} cannot hold a row, {key}: column {column} {problem}")]
    Unwritable {
        /// The table, with its keyspace.
        table: String,
        /// Which row.
        key: String,
        /// Its column.
        column: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

/// What the driver says of a request that failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum RequestError {
    /// A statement could not be executed.
    Execution(#[from] ExecutionError),
    /// A statement could not be prepared.
    Prepare(#[from] PrepareError),
    /// The servers did not agree on the schema in time.
    Agreement(#[from] SchemaAgreementError),
    /// The schema could not be read.
    Metadata(#[from] MetadataError),
    /// The answer is not what its statement asks for: another schema, or a null where there is never one.
    Answer(Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Whether trying again later may help: timeouts, too few replicas, overload, lost connections.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Request { source, .. } => source.is_transient(),
            Self::Damaged { .. } | Self::Unwritable { .. } => false,
        }
    }

    /// Whether a statement could not be prepared since its keyspace or table is not there.
    pub(crate) fn is_of_a_missing_table(&self) -> bool {
        let Self::Request { source, .. } = self else {
            return false;
        };
        matches!(
            **source,
            RequestError::Prepare(PrepareError::AllAttemptsFailed {
                first_attempt: RequestAttemptError::DbError(DbError::Invalid, _),
            })
        )
    }

    pub(crate) fn damaged(table: &str, key: String, bad: BadColumn) -> Self {
        Self::Damaged {
            table: table.to_owned(),
            key,
            column: bad.column,
            problem: bad.problem,
        }
    }

    pub(crate) fn unwritable(table: &str, key: String, bad: BadColumn) -> Self {
        Self::Unwritable {
            table: table.to_owned(),
            key,
            column: bad.column,
            problem: bad.problem,
        }
    }

    pub(crate) fn request(
        act: &'static str,
        table: &str,
        key: String,
        source: impl Into<RequestError>,
    ) -> Self {
        Self::Request {
            act,
            table: table.to_owned(),
            key,
            source: Box::new(source.into()),
        }
    }
}

impl RequestError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Execution(error) => is_execution_transient(error),
            Self::Prepare(error) => is_prepare_transient(error),
            Self::Agreement(error) => is_agreement_transient(error),
            Self::Metadata(_) => true,
            Self::Answer(_) => false,
        }
    }
}

/// The driver's enums may grow: what is not known here is not transient, so that it is seen.
fn is_execution_transient(error: &ExecutionError) -> bool {
    match error {
        ExecutionError::RequestTimeout(_) => true,
        ExecutionError::ConnectionPoolError(error) => is_pool_transient(error),
        ExecutionError::LastAttemptError(error) => is_attempt_transient(error),
        ExecutionError::PrepareError(error) => is_prepare_transient(error),
        ExecutionError::SchemaAgreementError(error) => is_agreement_transient(error),
        _ => false,
    }
}

fn is_prepare_transient(error: &PrepareError) -> bool {
    match error {
        PrepareError::ConnectionPoolError(error) => is_pool_transient(error),
        PrepareError::AllAttemptsFailed { first_attempt } => is_attempt_transient(first_attempt),
        _ => false,
    }
}

fn is_agreement_transient(error: &SchemaAgreementError) -> bool {
    match error {
        SchemaAgreementError::Timeout(_) | SchemaAgreementError::RequiredHostAbsent(_) => true,
        SchemaAgreementError::ConnectionPoolError(error) => is_pool_transient(error),
        SchemaAgreementError::PrepareError(error) => is_prepare_transient(error),
        SchemaAgreementError::RequestError(error) => is_attempt_transient(error),
        _ => false,
    }
}

fn is_pool_transient(error: &ConnectionPoolError) -> bool {
    match error {
        ConnectionPoolError::Broken { .. } | ConnectionPoolError::Initializing => true,
        // What is not known is not transient.
        _ => false,
    }
}

fn is_attempt_transient(error: &RequestAttemptError) -> bool {
    match error {
        RequestAttemptError::UnableToAllocStreamId
        | RequestAttemptError::BrokenConnectionError(_) => true,
        RequestAttemptError::DbError(error, _) => is_answer_transient(error),
        _ => false,
    }
}

fn is_answer_transient(error: &DbError) -> bool {
    matches!(
        error,
        DbError::Unavailable { .. }
            | DbError::Overloaded
            | DbError::IsBootstrapping
            | DbError::TruncateError
            | DbError::ReadTimeout { .. }
            | DbError::WriteTimeout { .. }
            | DbError::ReadFailure { .. }
            | DbError::WriteFailure { .. }
            | DbError::ServerError
            | DbError::RateLimitReached { .. }
    )
}
