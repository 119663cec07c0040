//! The servers as [`Link`](crate::link::Link) has them: the driver's session or, for simulations, a store in memory.
//!
//! One call is one request, or as many as the driver makes of it when it tries again elsewhere. Errors are the driver's.

use std::{error::Error, ops::ControlFlow, time::Duration};

use scylla::{
    client::{execution_profile::ExecutionProfileHandle, session::Session},
    response::{PagingState, query_result::QueryResult},
    serialize::row::SerializeRow,
    statement::{
        Statement as PlainStatement,
        batch::{Batch, BatchType},
        prepared::PreparedStatement,
    },
    value::{CqlValue, Row},
};

#[cfg(feature = "double")]
use crate::double;
use crate::{column::BadColumn, error::RequestError, link::Readable};

/// Rows that a read asks a server for at once.
const PAGE_ROWS: i32 = 1_000;

/// The same where each row may have 64 KiB: 16 MiB at most.
const PAGE_MESSAGES: i32 = 250;

/// How long one statement that changes the schema may take.
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(60);

/// Where requests go.
#[derive(Debug)]
pub(crate) enum Servers {
    Driver(Box<Session>),
    #[cfg(feature = "double")]
    Double(double::Client),
}

/// A statement, prepared by the servers that run it.
#[derive(Debug)]
pub(crate) enum Prepared {
    Driver(Box<PreparedStatement>),
    #[cfg(feature = "double")]
    Double(std::sync::Arc<double::Plan>),
}

/// What servers warned of while they did as they were asked.
pub(crate) type Warnings = Vec<String>;

/// One page of an answer.
pub(crate) enum Page {
    Driver(Box<QueryResult>),
    #[cfg(feature = "double")]
    Double(double::Page),
}

/// Why a page cannot be read.
pub(crate) enum BadPage {
    /// It is not what the statement asks for.
    Answer(Box<dyn Error + Send + Sync>),
    /// A row, named by its key, holds what no fold has written.
    Row(String, BadColumn),
}

impl Prepared {
    /// The same, read in pages that are bounded where each row may be as large as a message.
    pub(crate) fn of_messages(&mut self) {
        match self {
            Self::Driver(prepared) => prepared.set_page_size(PAGE_MESSAGES),
            #[cfg(feature = "double")]
            Self::Double(_) => {}
        }
    }
}

/// A statement that other servers have prepared: links are not mixed, for a statement is kept beside its link.
#[cfg(feature = "double")]
fn foreign() -> ! {
    panic!("a statement of another link")
}

impl Servers {
    pub(crate) async fn prepare(&self, text: &str) -> Result<Prepared, RequestError> {
        match self {
            Self::Driver(session) => {
                let mut prepared = session.prepare(text).await?;
                prepared.set_is_idempotent(true);
                prepared.set_page_size(PAGE_ROWS);
                // A read's columns are named and never change their types, so answers need not describe them. What a
                // conditional write answers does change.
                prepared.set_use_cached_result_metadata(text.starts_with("SELECT"));
                Ok(Prepared::Driver(Box::new(prepared)))
            }
            #[cfg(feature = "double")]
            Self::Double(client) => client.prepare(text).await.map(Prepared::Double),
        }
    }

    pub(crate) async fn write(
        &self,
        statement: &Prepared,
        values: &(impl SerializeRow + Sync),
    ) -> Result<Warnings, RequestError> {
        match (self, statement) {
            (Self::Driver(session), Prepared::Driver(prepared)) => {
                Ok(warnings(&session.execute_unpaged(prepared, values).await?))
            }
            #[cfg(feature = "double")]
            (Self::Double(client), Prepared::Double(plan)) => {
                client.write(plan, [values]).await?;
                Ok(Warnings::new())
            }
            #[cfg(feature = "double")]
            _ => foreign(),
        }
    }

    /// Writes rows of one table partition in one mutation.
    pub(crate) async fn write_together<R: SerializeRow + Sync>(
        &self,
        statement: &Prepared,
        rows: &[R],
    ) -> Result<Warnings, RequestError> {
        match (self, statement) {
            (Self::Driver(session), Prepared::Driver(prepared)) => {
                let statements = vec![(**prepared).clone().into(); rows.len()];
                let mut batch = Batch::new_with_statements(BatchType::Unlogged, statements);
                batch.set_is_idempotent(true);
                Ok(warnings(&session.batch(&batch, rows).await?))
            }
            #[cfg(feature = "double")]
            (Self::Double(client), Prepared::Double(plan)) => {
                client.write(plan, rows).await?;
                Ok(Warnings::new())
            }
            #[cfg(feature = "double")]
            _ => foreign(),
        }
    }

    /// Runs a conditional write, and says whether it applied.
    pub(crate) async fn write_if(
        &self,
        statement: &Prepared,
        values: &(impl SerializeRow + Sync),
    ) -> Result<(bool, Warnings), RequestError> {
        match (self, statement) {
            (Self::Driver(session), Prepared::Driver(prepared)) => {
                let result = session.execute_unpaged(prepared, values).await?;
                let warnings = warnings(&result);
                let is_applied = is_applied(result).map_err(RequestError::Answer)?;
                Ok((is_applied, warnings))
            }
            #[cfg(feature = "double")]
            (Self::Double(client), Prepared::Double(plan)) => {
                Ok((client.write_if(plan, values).await?, Warnings::new()))
            }
            #[cfg(feature = "double")]
            _ => foreign(),
        }
    }

    /// One page of an answer, and where the next begins.
    pub(crate) async fn page(
        &self,
        statement: &Prepared,
        values: &(impl SerializeRow + Sync),
        state: PagingState,
    ) -> Result<(Page, Option<PagingState>, Warnings), RequestError> {
        match (self, statement) {
            (Self::Driver(session), Prepared::Driver(prepared)) => {
                let (result, next) = session.execute_single_page(prepared, values, state).await?;
                let next = match next.into_paging_control_flow() {
                    ControlFlow::Continue(next) => Some(next),
                    ControlFlow::Break(()) => None,
                };
                let warnings = warnings(&result);
                Ok((Page::Driver(Box::new(result)), next, warnings))
            }
            #[cfg(feature = "double")]
            (Self::Double(client), Prepared::Double(plan)) => {
                let page = client.read(plan, values).await?;
                Ok((Page::Double(page), None, Warnings::new()))
            }
            #[cfg(feature = "double")]
            _ => foreign(),
        }
    }

    /// Changes the schema, by the node that `profile` names. Returns before the other servers agree.
    pub(crate) async fn change_schema(
        &self,
        text: &str,
        profile: Option<&ExecutionProfileHandle>,
    ) -> Result<(), RequestError> {
        match self {
            Self::Driver(session) => {
                let mut statement = PlainStatement::new(text);
                statement.set_is_idempotent(true);
                statement.set_request_timeout(Some(SCHEMA_TIMEOUT));
                statement.set_execution_profile_handle(profile.cloned());
                session.query_unpaged(statement, ()).await?;
                Ok(())
            }
            #[cfg(feature = "double")]
            Self::Double(client) => client.change_schema(text).await,
        }
    }

    /// The driver's session; a store in memory has none.
    pub(crate) fn session(&self) -> Option<&Session> {
        match self {
            Self::Driver(session) => Some(session),
            #[cfg(feature = "double")]
            Self::Double(_) => None,
        }
    }
}

impl Page {
    /// Its rows, checked.
    pub(crate) fn read<T: Readable>(self) -> Result<Vec<T>, BadPage> {
        match self {
            Self::Driver(result) => {
                let result = result.into_rows_result().map_err(answer)?;
                let rows = result.rows::<T::Row<'_>>().map_err(answer)?;
                let mut values = Vec::with_capacity(result.rows_num());
                for row in rows {
                    values.push(read_row(row.map_err(answer)?)?);
                }
                Ok(values)
            }
            #[cfg(feature = "double")]
            Self::Double(page) => {
                let mut values = Vec::new();
                page.check::<T::Row<'_>>().map_err(answer)?;
                for row in page.rows() {
                    values.push(read_row(page.row(row).map_err(answer)?)?);
                }
                Ok(values)
            }
        }
    }
}

fn read_row<T: Readable>(row: T::Row<'_>) -> Result<T, BadPage> {
    let key = T::key(&row);
    T::read(row).map_err(|bad| BadPage::Row(key, bad))
}

fn answer(error: impl Error + Send + Sync + 'static) -> BadPage {
    BadPage::Answer(Box::new(error))
}

fn warnings(result: &QueryResult) -> Warnings {
    result.warnings().map(str::to_owned).collect()
}

fn is_applied(result: QueryResult) -> Result<bool, Box<dyn Error + Send + Sync>> {
    // Cassandra adds what stands there only where it did not apply, ScyllaDB always: so any number of columns.
    let rows = result.into_rows_result()?;
    let row: Row = rows.first_row()?;
    match row.columns.first() {
        Some(Some(CqlValue::Boolean(applied))) => Ok(*applied),
        other => Err(format!("the answer to a conditional write begins with {other:?}").into()),
    }
}
