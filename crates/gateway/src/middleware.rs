//! What happens around every request: a span, counts, a bound on how many there are and how long one takes, and a
//! problem document where a handler panicked.

use std::{any::Any, sync::Arc, time::Duration};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::{sync::Semaphore, time::Instant};
use tracing::Instrument;

use crate::{
    metrics::{self, InFlight},
    problem::{Kind, Problem},
};

/// The `route` of a request to an unknown path.
const NO_ROUTE: &str = "none";

/// Counts and measures a request, and puts it into a span. No body and no query is ever logged.
pub(crate) async fn observe(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let _in_flight = InFlight::enter();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    let method = request.method().clone();
    let span = tracing::info_span!(
        "request",
        %method,
        route,
        status = tracing::field::Empty,
    );
    let response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    span.record("status", status);
    let took = began.elapsed();
    metrics::answered(route, known(method.as_str()), status, took);
    span.in_scope(|| tracing::debug!(took_ms = took.as_millis(), "answered"));
    response
}

/// Methods are labels of metrics: whatever a client makes up is one.
fn known(method: &str) -> &str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"];
    KNOWN
        .into_iter()
        .find(|known| *known == method)
        .unwrap_or("other")
}

/// How much a gateway does at a time.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) timeout: Duration,
}

/// Turns away what is more than is served at a time, and ends what takes too long.
pub(crate) async fn bound(State(bounds): State<Bounds>, request: Request, next: Next) -> Response {
    let Ok(_permit) = bounds.requests.try_acquire() else {
        let problem = Problem::new(
            Kind::Overloaded,
            "more requests are under way than are served",
        );
        return problem.into_response();
    };
    match tokio::time::timeout(bounds.timeout, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            tracing::warn!("a request took too long");
            let problem = Problem::new(
                Kind::Overloaded,
                "the call took too long: what it was to change may have been changed or not",
            );
            problem.into_response()
        }
    }
}

/// What a caller is told where a handler panicked.
pub(crate) fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let said = panic
        .downcast_ref::<&str>()
        .map(|said| (*said).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    metrics::panicked();
    tracing::error!(panic = said.unwrap_or_default(), "a request panicked");
    Problem::internal().into_response()
}
