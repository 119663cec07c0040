//! The harness of the end-to-end suite: real processes, a real Kafka, a real store, seen from outside.
//!
//! A [`Town`] is a whole Tidemark: a fresh log, a keyspace of its own, gateways and workers as child processes. In it
//! every test plays a [`Scene`] of its own, whose people and conversations nobody else knows, and talks HTTP as
//! [`User`]s do. What a scene should have come to is either written in the test or asked of the naive model, which
//! reads the log itself ([`audit`]).
//!
//! The harness knows the HTTP interface, the command line, the metrics and the log's language; nothing of folds, of
//! tables, or of how any of it is done.
//!
//! Nothing here sleeps and then looks: a read carries the positions of what the scene wrote before, and everything
//! else waits for a condition with a deadline ([`until`]). Every process's output is kept, and a line of it at WARN or
//! ERROR that the test did not announce fails the test.
//!
//! Run it by `deploy/dev/with-servers cargo test -p tidemark-e2e`. One run at a time uses a Kafka: the log's topics
//! have fixed names, and each town begins by deleting them.

// A panic is how a test fails.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answer;
pub mod audit;
mod check;
pub mod kafka;
pub mod load;
mod output;
mod process;
mod scene;
pub mod servers;
mod settings;
mod town;
mod user;
mod wait;

pub use answer::Answer;
pub use check::{check, check_part, without};
pub use process::{Process, run};
pub use scene::{Scene, Size};
pub use settings::Settings;
pub use town::{Town, Turn, View, Visit};
pub use user::User;
pub use wait::{PATIENCE, until};
