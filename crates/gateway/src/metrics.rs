//! What a gateway counts and measures. Names and labels stand here, once; no label names a user or a conversation.

use std::time::Duration;

use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

/// Requests answered, by `route` (as in the OpenAPI document; `none` for an unknown path), `method` and `status`.
pub const REQUESTS_TOTAL: &str = "tidemark_gateway_requests_total";
/// Seconds from a request's head to its answer's head, by `route`, `method` and `status`.
pub const REQUEST_SECONDS: &str = "tidemark_gateway_request_seconds";
/// Requests under way.
pub const REQUESTS_IN_FLIGHT: &str = "tidemark_gateway_requests_in_flight";
/// Events handed to the log, by `outcome`: `appended`, `not_appended` or `unknown`.
pub const APPENDS_TOTAL: &str = "tidemark_gateway_appends_total";
/// Seconds until the log had acknowledged an event or given it up.
pub const APPEND_SECONDS: &str = "tidemark_gateway_append_seconds";
/// Seconds that requests waited for a view, by `reason` (`at`, `fresh` or `send`) and `outcome` (`reached` or
/// `too_late`).
pub const WAIT_SECONDS: &str = "tidemark_gateway_wait_seconds";
/// Answers that said `Tidemark-Stale`.
pub const STALE_ANSWERS_TOTAL: &str = "tidemark_gateway_stale_answers_total";
/// Requests that failed by a panic.
pub const PANICS_TOTAL: &str = "tidemark_gateway_panics_total";

/// A read that waits for its `?at=`.
pub(crate) const WAIT_AT: &str = "at";
/// A refusal that waits for the log's end.
pub(crate) const WAIT_FRESH: &str = "fresh";
/// A send that waits for its message.
pub(crate) const WAIT_SEND: &str = "send";

/// Describes every metric to the process's recorder. To be called once, when that is installed.
pub fn describe() {
    describe_counter!(REQUESTS_TOTAL, "Requests answered");
    describe_histogram!(
        REQUEST_SECONDS,
        Unit::Seconds,
        "Time from a request to its answer"
    );
    describe_gauge!(REQUESTS_IN_FLIGHT, "Requests under way");
    describe_counter!(APPENDS_TOTAL, "Events handed to the log");
    describe_histogram!(
        APPEND_SECONDS,
        Unit::Seconds,
        "Time until the log had acknowledged an event"
    );
    describe_histogram!(
        WAIT_SECONDS,
        Unit::Seconds,
        "Time that requests waited for a view"
    );
    describe_counter!(
        STALE_ANSWERS_TOTAL,
        "Answers from a view that was not there in time"
    );
    describe_counter!(PANICS_TOTAL, "Requests that failed by a panic");
}

/// A request under way; counted while it lives.
#[derive(Debug)]
pub(crate) struct InFlight;

impl InFlight {
    pub(crate) fn enter() -> Self {
        gauge!(REQUESTS_IN_FLIGHT).increment(1.0);
        Self
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        gauge!(REQUESTS_IN_FLIGHT).decrement(1.0);
    }
}

pub(crate) fn answered(route: &str, method: &str, status: u16, took: Duration) {
    let labels = [
        ("route", route.to_owned()),
        ("method", method.to_owned()),
        ("status", status.to_string()),
    ];
    counter!(REQUESTS_TOTAL, &labels).increment(1);
    histogram!(REQUEST_SECONDS, &labels).record(took);
}

pub(crate) fn appended(outcome: &'static str, took: Duration) {
    counter!(APPENDS_TOTAL, "outcome" => outcome).increment(1);
    histogram!(APPEND_SECONDS).record(took);
}

pub(crate) fn waited(reason: &'static str, waited: Duration, is_reached: bool) {
    let outcome = if is_reached { "reached" } else { "too_late" };
    histogram!(WAIT_SECONDS, "reason" => reason, "outcome" => outcome).record(waited);
}

pub(crate) fn stale() {
    counter!(STALE_ANSWERS_TOTAL).increment(1);
}

pub(crate) fn panicked() {
    counter!(PANICS_TOTAL).increment(1);
}
