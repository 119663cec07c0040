//! All paths of a gateway. Calls are routed from the same list that the OpenAPI document is made of.

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, OriginalUri, State},
    http::{Method, StatusCode, header},
    middleware::{from_fn, from_fn_with_state},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde_json::json;
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;

use crate::{
    app::App,
    middleware::{self, Bounds},
    openapi,
    problem::{Kind, Problem},
    reads, writes,
};

/// Where all calls are below.
const CALLS: &str = "/v1";

/// All paths.
pub(crate) fn router(app: Arc<App>) -> Router {
    let limits = &app.settings.limits;
    let bounds = Bounds {
        requests: Arc::new(Semaphore::new(limits.requests)),
        timeout: app.settings.waits.request,
    };
    let (calls, document) = calls(limits.body_bytes, limits.bulk_bytes).split_for_parts();
    let document = openapi::complete(document).to_json();
    let calls = calls.layer(from_fn_with_state(bounds, middleware::bound));
    // The document is made of this code's own types; whether it has a JSON form is for the tests to show.
    let document: Arc<str> = document.unwrap_or_default().into();
    Router::new()
        .route("/", get(front_page))
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route(
            "/openapi.json",
            get(async move || {
                (
                    [(header::CONTENT_TYPE, "application/json")],
                    document.to_string(),
                )
            }),
        )
        .merge(calls)
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(CatchPanicLayer::custom(middleware::panicked))
        .layer(from_fn(middleware::observe))
        .with_state(app)
}

/// The calls, with their part of the OpenAPI document.
pub(crate) fn calls(body_bytes: usize, bulk_bytes: usize) -> OpenApiRouter<Arc<App>> {
    let calls = writes::calls()
        .merge(reads::calls())
        .layer(DefaultBodyLimit::max(body_bytes))
        .merge(writes::bulk_call().layer(DefaultBodyLimit::max(bulk_bytes)));
    OpenApiRouter::new().nest(CALLS, calls)
}

async fn front_page() -> Html<&'static str> {
    Html(include_str!("front_page.html"))
}

async fn alive() -> Json<serde_json::Value> {
    Json(json!({ "status": "alive" }))
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    let missing = app.health.missing(app.appender.log_end()).await;
    if missing.is_empty() {
        return Json(json!({ "status": "ready" })).into_response();
    }
    let answer = json!({ "status": "not ready", "missing": missing });
    (StatusCode::SERVICE_UNAVAILABLE, Json(answer)).into_response()
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    /// The format that Prometheus has scraped for ever.
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, TEXT)], app.metrics.render()).into_response()
}

async fn no_such_path(OriginalUri(uri): OriginalUri) -> Problem {
    Problem::new(
        Kind::NotFound,
        format!("{} is no path here: /openapi.json has them all", uri.path()),
    )
}

async fn no_such_method(method: Method, OriginalUri(uri): OriginalUri) -> Problem {
    Problem::new(
        Kind::MethodNotAllowed,
        format!("{} has no {method}: /openapi.json has them all", uri.path()),
    )
}
