//! The way to the servers: one session, a bound on what is in flight, prepared statements.
//!
//! The driver admits any number of requests and queues them where nobody sees them, so the bound is here and holds for
//! everything that one [`Store`](crate::Store) does.

use std::{
    error::Error,
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures::{
    StreamExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use scylla::{
    client::{execution_profile::ExecutionProfileHandle, session::Session},
    deserialize::row::DeserializeRow,
    response::{PagingState, query_result::QueryResult},
    serialize::row::SerializeRow,
    statement::{
        Statement as PlainStatement,
        batch::{Batch, BatchType},
        prepared::PreparedStatement,
    },
    value::{CqlValue, Row},
};
use tokio::sync::Semaphore;

use crate::{
    column::BadColumn,
    error::{RequestError, StoreError},
};

/// Rows that a read asks a server for at once.
const PAGE_ROWS: i32 = 1_000;

/// The same where each row may have 64 KiB: 16 MiB at most.
const PAGE_MESSAGES: i32 = 250;

/// How long one statement that changes the schema may take.
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(60);

/// Something to do with the store, beside others like it.
pub(crate) type Job<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A prepared statement and the table it is about.
#[derive(Debug)]
pub(crate) struct Statement {
    prepared: PreparedStatement,
    table: String,
    has_warned: AtomicBool,
}

impl Statement {
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    /// The same, read in pages that are bounded where each row may be as large as a message.
    pub(crate) fn of_messages(mut self) -> Self {
        self.prepared.set_page_size(PAGE_MESSAGES);
        self
    }

    /// Passes on what a server warns of: aloud the first time, for it then does so at each request.
    fn heed(&self, result: &QueryResult) {
        for warning in result.warnings() {
            let table = &self.table;
            if self.has_warned.swap(true, Ordering::Relaxed) {
                tracing::debug!(table, warning, "a server warns of a request");
            } else {
                tracing::warn!(table, warning, "a server warns of a request");
            }
        }
    }
}

/// A value that stands in a table as one row.
pub(crate) trait Readable: Sized + Send {
    /// The row as CQL has it.
    type Row<'r>: DeserializeRow<'r, 'r>;

    /// Names the row in errors.
    fn key(row: &Self::Row<'_>) -> String;

    /// Checks the row and takes the value out of it.
    fn read(row: Self::Row<'_>) -> Result<Self, BadColumn>;
}

/// The session with the servers.
#[derive(Debug)]
pub struct Link {
    session: Session,
    in_flight: Semaphore,
    limit: usize,
}

impl Link {
    pub(crate) fn new(session: Session, limit: usize) -> Self {
        Self {
            session,
            in_flight: Semaphore::new(limit),
            limit,
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Prepares a statement, in whose text `{table}` stands for the table's name.
    pub(crate) async fn prepare(&self, table: &str, text: &str) -> Result<Statement, StoreError> {
        let text = text.replace("{table}", table);
        match self.session.prepare(text.as_str()).await {
            Ok(mut prepared) => {
                prepared.set_is_idempotent(true);
                prepared.set_page_size(PAGE_ROWS);
                // A read's columns are named and never change their types, so answers need not describe them. What a
                // conditional write answers does change.
                prepared.set_use_cached_result_metadata(text.starts_with("SELECT"));
                Ok(Statement {
                    prepared,
                    table: table.to_owned(),
                    has_warned: AtomicBool::new(false),
                })
            }
            Err(error) => Err(StoreError::request(
                "prepare a statement on",
                table,
                text,
                error,
            )),
        }
    }

    /// Changes the schema, by the node that `profile` names. Returns before the other servers agree.
    pub(crate) async fn change_schema(
        &self,
        text: &str,
        profile: &ExecutionProfileHandle,
    ) -> Result<(), StoreError> {
        let mut statement = PlainStatement::new(text);
        statement.set_is_idempotent(true);
        statement.set_request_timeout(Some(SCHEMA_TIMEOUT));
        statement.set_execution_profile_handle(Some(profile.clone()));
        match self.session.query_unpaged(statement, ()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(StoreError::request(
                "change",
                "the schema",
                first_line(text),
                error,
            )),
        }
    }

    /// Writes one row.
    pub(crate) async fn write(
        &self,
        statement: &Statement,
        values: &(impl SerializeRow + Sync),
        key: impl FnOnce() -> String + Send,
    ) -> Result<(), StoreError> {
        let _permit = self.in_flight.acquire().await;
        match self
            .session
            .execute_unpaged(&statement.prepared, values)
            .await
        {
            Ok(result) => {
                statement.heed(&result);
                Ok(())
            }
            Err(error) => Err(StoreError::request("write", &statement.table, key(), error)),
        }
    }

    /// Writes rows of one table partition in one mutation.
    pub(crate) async fn write_together<R: SerializeRow + Sync>(
        &self,
        statement: &Statement,
        rows: &[R],
        key: impl FnOnce() -> String + Send,
    ) -> Result<(), StoreError> {
        let statements = vec![statement.prepared.clone().into(); rows.len()];
        let mut batch = Batch::new_with_statements(BatchType::Unlogged, statements);
        batch.set_is_idempotent(true);
        let _permit = self.in_flight.acquire().await;
        match self.session.batch(&batch, rows).await {
            Ok(result) => {
                statement.heed(&result);
                Ok(())
            }
            Err(error) => Err(StoreError::request("write", &statement.table, key(), error)),
        }
    }

    /// Runs a conditional write, and says whether it applied. A write that the driver sent twice, after an answer got
    /// lost, may say no where it did: the caller looks at what stands there.
    pub(crate) async fn write_if(
        &self,
        statement: &Statement,
        values: &(impl SerializeRow + Sync),
        key: String,
    ) -> Result<bool, StoreError> {
        let answer = {
            let _permit = self.in_flight.acquire().await;
            self.session
                .execute_unpaged(&statement.prepared, values)
                .await
        };
        let failed = |error: RequestError| {
            StoreError::request("write", &statement.table, key.clone(), error)
        };
        let result = answer.map_err(|error| failed(error.into()))?;
        statement.heed(&result);
        is_applied(result).map_err(|error| failed(RequestError::Answer(error)))
    }

    /// The first row of an answer, if there is one.
    pub(crate) async fn first<T: Readable>(
        &self,
        statement: &Statement,
        values: &(impl SerializeRow + Sync),
        key: impl Into<String> + Send,
    ) -> Result<Option<T>, StoreError> {
        let key = key.into();
        let (rows, _) = self
            .page(statement, values, &key, PagingState::start())
            .await?;
        Ok(rows.into_iter().next())
    }

    /// All rows of an answer.
    pub(crate) async fn all<T: Readable>(
        &self,
        statement: &Statement,
        values: &(impl SerializeRow + Sync),
        key: impl Into<String> + Send,
    ) -> Result<Vec<T>, StoreError> {
        let key = key.into();
        let mut all = Vec::new();
        let mut state = PagingState::start();
        loop {
            let (rows, next) = self.page(statement, values, &key, state).await?;
            if all.is_empty() {
                all = rows;
            } else {
                all.extend(rows);
            }
            match next {
                Some(next) => state = next,
                None => return Ok(all),
            }
        }
    }

    /// One page of an answer, and where the next begins.
    pub(crate) async fn page<T: Readable>(
        &self,
        statement: &Statement,
        values: &(impl SerializeRow + Sync),
        key: &str,
        state: PagingState,
    ) -> Result<(Vec<T>, Option<PagingState>), StoreError> {
        let failed = |error: RequestError| {
            StoreError::request("read", &statement.table, key.to_owned(), error)
        };
        let answer = {
            let _permit = self.in_flight.acquire().await;
            self.session
                .execute_single_page(&statement.prepared, values, state)
                .await
        };
        let (result, next) = answer.map_err(|error| failed(error.into()))?;
        statement.heed(&result);
        let rows = read_rows(statement, result, &failed)?;
        match next.into_paging_control_flow() {
            ControlFlow::Continue(next) => Ok((rows, Some(next))),
            ControlFlow::Break(()) => Ok((rows, None)),
        }
    }

    /// Runs jobs beside each other, as many as may be in flight. The first that fails ends them all: those not yet
    /// answered are dropped, and the servers may or may not have done them.
    pub(crate) async fn run<T: Send>(&self, jobs: Vec<Job<'_, T>>) -> Result<Vec<T>, StoreError> {
        stream::iter(jobs)
            .buffer_unordered(self.limit)
            .try_collect()
            .await
    }

    /// The rows of an answer as they come, a page in memory at a time.
    pub(crate) fn scan<'a, T, V>(
        &'a self,
        statement: &'a Statement,
        values: V,
        key: String,
    ) -> BoxStream<'a, Result<T, StoreError>>
    where
        T: Readable + 'a,
        V: SerializeRow + Send + Sync + 'a,
    {
        let first = (values, key, Some(PagingState::start()));
        let pages = stream::try_unfold(first, move |(values, key, state)| async move {
            let Some(state) = state else {
                return Ok::<_, StoreError>(None);
            };
            let (rows, next) = self.page::<T>(statement, &values, &key, state).await?;
            Ok(Some((
                stream::iter(rows.into_iter().map(Ok)),
                (values, key, next),
            )))
        });
        pages.try_flatten().boxed()
    }
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

fn read_rows<T: Readable>(
    statement: &Statement,
    result: QueryResult,
    failed: &impl Fn(RequestError) -> StoreError,
) -> Result<Vec<T>, StoreError> {
    let result = result
        .into_rows_result()
        .map_err(|error| failed(answer(error)))?;
    let rows = result
        .rows::<T::Row<'_>>()
        .map_err(|error| failed(answer(error)))?;
    let mut values = Vec::with_capacity(result.rows_num());
    for row in rows {
        let row = row.map_err(|error| failed(answer(error)))?;
        let key = T::key(&row);
        let value = T::read(row).map_err(|bad| StoreError::damaged(&statement.table, key, bad))?;
        values.push(value);
    }
    Ok(values)
}

fn answer(error: impl Error + Send + Sync + 'static) -> RequestError {
    RequestError::Answer(Box::new(error))
}

/// Enough of a statement to recognise it by.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.trim_end_matches(" (").to_owned()
}
