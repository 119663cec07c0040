//! The HTTP side of Tidemark: appends events to the log, and serves the views.
//!
//! ```text
//!  request ─▶ caller ─▶ judge (roaming) ─▶ append ─▶ Kafka          writes: 202 with a position
//!                  └──▶ reach ?at= ─▶ heads, then pieces and rows    reads: views in the store
//! ```
//!
//! The gateway keeps nothing of its own: any number of them serve side by side, and a write through one is judged and
//! read through another. What that rests on:
//!
//! - Whoever holds a position is answered no older state than that, or is told so (`reached`, `app`).
//! - Nothing is refused on an older view than the log's end as of the request (`App::judged`).
//! - What is shown ends where the view that judged membership ends, and has no holes below (`room`, `reads`).
//! - A row and a head are shown together only where they are one state (`reads::list`).
//!
//! Knows the store and the log, and of the folds only what rows and heads mean; knows no projector.

mod app;
pub mod append;
mod cursor;
mod health;
mod judge;
mod log_end;
pub mod metrics;
mod middleware;
mod openapi;
mod problem;
mod reached;
mod reads;
mod request;
mod room;
mod routes;
#[cfg(test)]
mod sample;
mod server;
mod settings;
mod shared;
mod time;
mod views;
mod writes;

pub use append::{AppendError, AppendSettings, Appender};
pub use log_end::{LogEnd, LogEndError};
pub use server::{Gateway, GatewayError};
pub use settings::{Auth, GatewaySettings, Limits, Waits};
