//! The way to a store in memory: whoever carries the requests decides what becomes of them.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use scylla::{
    deserialize::{
        DeserializationError, FrameSlice, TypeCheckError,
        row::{ColumnIterator, DeserializeRow},
    },
    errors::{DbError, ExecutionError, PrepareError, RequestAttemptError},
    serialize::{SerializationError, row::SerializeRow},
};

use super::{
    cluster::Cluster,
    plan::{Plan, UnpreparedCql},
    request::{Answer, Answered, Request},
};
use crate::error::RequestError;

/// Carries requests to a [`Cluster`], or not.
pub trait Wire: Send + Sync + 'static {
    /// Brings a request and its answer. What is dropped meanwhile may have been served or not.
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Answer, Lost>>;
}

/// No answer came in time: the request was served, or not, or will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

/// A wire that serves everything at once.
#[derive(Debug, Clone)]
pub struct Direct(pub Cluster);

impl Wire for Direct {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Answer, Lost>> {
        let answer = request.apply(&self.0);
        async move { Ok(answer) }.boxed()
    }
}

/// What a [`Store`](crate::Store) has in place of the driver's session.
pub(crate) struct Client {
    pub(crate) cluster: Cluster,
    pub(crate) wire: Arc<dyn Wire>,
}

/// The rows that answer a read.
pub(crate) struct Page {
    plan: Arc<Plan>,
    rows: Vec<Vec<u8>>,
}

impl Client {
    pub(crate) async fn prepare(&self, text: &str) -> Result<Arc<Plan>, RequestError> {
        match self.cluster.prepare(text) {
            Ok(plan) => Ok(plan),
            // As servers put it.
            Err(UnpreparedCql::NoTable(table)) => {
                let why = format!("there is no table {table}");
                let first_attempt = RequestAttemptError::DbError(DbError::Invalid, why);
                Err(PrepareError::AllAttemptsFailed { first_attempt }.into())
            }
            Err(error @ UnpreparedCql::Unknown(_)) => Err(RequestError::Answer(Box::new(error))),
        }
    }

    pub(crate) async fn change_schema(&self, text: &str) -> Result<(), RequestError> {
        let changed = self.cluster.change_schema(text);
        changed.map_err(|error| RequestError::Answer(Box::new(error)))
    }

    pub(crate) async fn write<'v, R: SerializeRow + 'v>(
        &self,
        plan: &Arc<Plan>,
        rows: impl IntoIterator<Item = &'v R>,
    ) -> Result<(), RequestError> {
        let request = Request::write(plan, rows).map_err(unserialised)?;
        self.send(request).await?;
        Ok(())
    }

    pub(crate) async fn write_if(
        &self,
        plan: &Arc<Plan>,
        values: &(impl SerializeRow + Sync),
    ) -> Result<bool, RequestError> {
        let request = Request::write_if(plan, values).map_err(unserialised)?;
        match self.send(request).await?.0 {
            Answered::Applied(is_applied) => Ok(is_applied),
            other => Err(misplaced(&other)),
        }
    }

    pub(crate) async fn read(
        &self,
        plan: &Arc<Plan>,
        values: &(impl SerializeRow + Sync),
    ) -> Result<Page, RequestError> {
        let request = Request::read(plan, values).map_err(unserialised)?;
        match self.send(request).await?.0 {
            Answered::Rows(rows) => Ok(Page {
                plan: plan.clone(),
                rows,
            }),
            other => Err(misplaced(&other)),
        }
    }

    /// Sends a request; a lost answer is what the driver makes of one.
    async fn send(&self, request: Request) -> Result<Answer, RequestError> {
        let answer = self.wire.send(request).await;
        answer.map_err(|Lost| ExecutionError::RequestTimeout(Duration::ZERO).into())
    }
}

fn unserialised(error: SerializationError) -> RequestError {
    RequestError::Answer(Box::new(error))
}

/// The wire has brought the answer to another request.
fn misplaced(answer: &Answered) -> RequestError {
    RequestError::Answer(format!("the answer to another request: {answer:?}").into())
}

impl Page {
    /// Whether rows are of the type that is asked for.
    pub(crate) fn check<'p, R: DeserializeRow<'p, 'p>>(&'p self) -> Result<(), TypeCheckError> {
        R::type_check(&self.plan.answer)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[u8]> {
        self.rows.iter().map(Vec::as_slice)
    }

    /// A row of them; its type has been checked.
    pub(crate) fn row<'p, R: DeserializeRow<'p, 'p>>(
        &'p self,
        row: &'p [u8],
    ) -> Result<R, DeserializationError> {
        let columns = ColumnIterator::new(&self.plan.answer, FrameSlice::new_borrowed(row));
        R::deserialize(columns)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}
