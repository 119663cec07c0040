//! Serves /healthz, /readyz and /metrics of a worker.

use std::{fmt::Write as _, net::SocketAddr};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::status::{Readiness, Status};

/// Serves the status of workers until `shutdown`. `workers` are those of one process, one a view.
///
/// # Errors
/// The address cannot be bound, or the server failed.
pub async fn serve(
    listen: SocketAddr,
    workers: Vec<Status>,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    tracing::info!(listen = %listener.local_addr()?, "serving the worker's health and metrics");
    let routes = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(workers);
    axum::serve(listener, routes)
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await
}

async fn readyz(State(workers): State<Vec<Status>>) -> impl IntoResponse {
    let mut text = String::new();
    let mut code = StatusCode::OK;
    for worker in workers {
        match worker.readiness() {
            Readiness::Ready => {
                let _ = writeln!(text, "{}: ready", worker.view());
            }
            Readiness::NotReady(why) => {
                code = StatusCode::SERVICE_UNAVAILABLE;
                let _ = writeln!(text, "{}: {why}", worker.view());
            }
        }
    }
    (code, text)
}

async fn metrics(State(workers): State<Vec<Status>>) -> impl IntoResponse {
    let content_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (content_type, crate::metrics::render(&workers))
}
