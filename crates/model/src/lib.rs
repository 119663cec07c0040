//! The naive model of the views: what tests and the simulator hold the folds against.
//!
//! [`Model`] says what `docs/rules.md` says, in the slowest and most obvious way: it keeps every accepted event
//! and answers each question by reading them from the first on. It has no counters, no run-lengths, no caches
//! and no code in common with the folds, so that the two do not err alike.
//!
//! [`story`] writes logs by hand, as chat. [`generate`] draws them at random, as proptest strategies that shrink
//! and from bare seeds.
//!
//! For tests only: nothing that ships depends on this crate, and it knows nothing but the log's language.

pub mod generate;
mod judge;
mod logged;
mod model;
mod past;
mod rows;
pub mod story;

pub use judge::{REASONS, Verdict};
pub use logged::Logged;
pub use model::{Model, Settings};
pub use rows::{Mention, Message, Session};
