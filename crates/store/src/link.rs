//! The way to the servers: one session, a bound on what is in flight, prepared statements.
//!
//! The driver admits any number of requests and queues them where nobody sees them, so the bound is here and holds for
//! everything that one [`Store`](crate::Store) does.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::{
    StreamExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use scylla::{
    client::{execution_profile::ExecutionProfileHandle, session::Session},
    deserialize::row::DeserializeRow,
    response::PagingState,
    serialize::row::SerializeRow,
};
use tokio::sync::Semaphore;

use crate::{
    column::BadColumn,
    error::{RequestError, StoreError},
    servers::{BadPage, Prepared, Servers, Warnings},
};

/// Something to do with the store, beside others like it.
pub(crate) type Job<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// A prepared statement and the table it is about.
#[derive(Debug)]
pub(crate) struct Statement {
    prepared: Prepared,
    table: String,
    has_warned: AtomicBool,
}

impl Statement {
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    /// The same, read in pages that are bounded where each row may be as large as a message.
    pub(crate) fn of_messages(mut self) -> Self {
        self.prepared.of_messages();
        self
    }

    /// Passes on what a server warns of: aloud the first time, for it then does so at each request.
    fn heed(&self, warnings: Warnings) {
        for warning in warnings {
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
    servers: Servers,
    in_flight: Semaphore,
    limit: usize,
}

impl Link {
    pub(crate) fn new(servers: Servers, limit: usize) -> Self {
        Self {
            servers,
            in_flight: Semaphore::new(limit),
            limit,
        }
    }

    /// The driver's session; a store in memory has none.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.servers.session()
    }

    /// Prepares a statement, in whose text `{table}` stands for the table's name.
    pub(crate) async fn prepare(&self, table: &str, text: &str) -> Result<Statement, StoreError> {
        let text = text.replace("{table}", table);
        match self.servers.prepare(&text).await {
            Ok(prepared) => Ok(Statement {
                prepared,
                table: table.to_owned(),
                has_warned: AtomicBool::new(false),
            }),
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
        profile: Option<&ExecutionProfileHandle>,
    ) -> Result<(), StoreError> {
        match self.servers.change_schema(text, profile).await {
            Ok(()) => Ok(()),
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
        match self.servers.write(&statement.prepared, values).await {
            Ok(warnings) => {
                statement.heed(warnings);
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
        let _permit = self.in_flight.acquire().await;
        match self.servers.write_together(&statement.prepared, rows).await {
            Ok(warnings) => {
                statement.heed(warnings);
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
        let _permit = self.in_flight.acquire().await;
        match self.servers.write_if(&statement.prepared, values).await {
            Ok((is_applied, warnings)) => {
                statement.heed(warnings);
                Ok(is_applied)
            }
            Err(error) => Err(StoreError::request("write", &statement.table, key, error)),
        }
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
            self.servers.page(&statement.prepared, values, state).await
        };
        let (page, next, warnings) = answer.map_err(failed)?;
        statement.heed(warnings);
        match page.read() {
            Ok(rows) => Ok((rows, next)),
            Err(BadPage::Answer(error)) => Err(failed(RequestError::Answer(error))),
            Err(BadPage::Row(row, bad)) => Err(StoreError::damaged(&statement.table, row, bad)),
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

/// Enough of a statement to recognise it by.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.trim_end_matches(" (").to_owned()
}
