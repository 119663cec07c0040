//! Calls that read the views.
//!
//! A read takes each view once, waits until those have reached the positions that the caller holds, and then reads
//! heads before pieces and rows. Nothing is shown that is beyond the last seq of the view that judged membership; what
//! is ahead of a head is never a reason to show less than the head promises.

mod history;
mod inbox;
mod list;
mod members;
mod mentions;
pub(crate) mod message;
mod pending;
pub(crate) mod session;
mod sessions;
mod sync;

use std::sync::Arc;

use tidemark_event::Position;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    request::{FromParams, Params},
};

/// The calls of this module.
pub(crate) fn calls() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(sessions::list))
        .routes(routes!(sync::sync))
        .routes(routes!(mentions::list))
        .routes(routes!(history::list))
        .routes(routes!(members::list))
        .routes(routes!(inbox::pull))
}

/// What each call takes from its query, for the test that holds the document against it.
#[cfg(test)]
pub(crate) fn parameters() -> Vec<(&'static str, Vec<String>)> {
    vec![
        (
            "GET /v1/sessions",
            Params::asked_by::<sessions::ListSessions>(),
        ),
        ("GET /v1/sync", Params::asked_by::<sync::SyncQuery>()),
        (
            "GET /v1/mentions",
            Params::asked_by::<mentions::ListMentions>(),
        ),
        (
            "GET /v1/conversations/{conversation_id}/messages",
            Params::asked_by::<history::ListMessages>(),
        ),
        (
            "GET /v1/conversations/{conversation_id}/members",
            Params::asked_by::<PlainList>(),
        ),
        ("GET /v1/inbox", Params::asked_by::<inbox::PullQuery>()),
    ]
}

/// Which page of a list is asked for.
#[derive(Debug, PartialEq)]
struct Paging {
    limit: usize,
    cursor: Option<String>,
    /// Positions that the views must have reached.
    at: Vec<Position>,
}

impl Paging {
    fn take(params: &mut Params, default: usize, most: usize) -> Self {
        Self {
            limit: params.limit("limit", default, most),
            cursor: params.one("cursor"),
            at: params.at(),
        }
    }
}

/// A list without parameters of its own, of 100 entries a page and at most 1,000.
#[derive(Debug)]
struct PlainList(Paging);

impl FromParams for PlainList {
    fn take(params: &mut Params) -> Self {
        Self(Paging::take(params, 100, 1_000))
    }
}
