//! Holds folded views against the naive model, for the folds' own tests and for the worker's simulator.
//!
//! [`Shelf`] is a store in memory that keeps what rule 3 keeps; [`check`] compares what it holds with
//! [`tidemark_model::Model`]. For tests only.

mod check;
mod shelf;

pub use check::{Checked, check, check_verdicts};
pub use shelf::{Batch, Rules, STEPS, Shelf, Step, Worker, Write, fold_all, record};
