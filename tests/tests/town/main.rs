//! What a running Tidemark shows: many small stories in one town, beside each other.
//!
//! Every test has people and conversations of its own. What it does to groups it does to a small one, a middling one
//! and a large one ([`Size::ALL`]), which are kept differently and must look the same. No process logs anything at WARN
//! or ERROR while these run.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod bulk;
mod commands;
mod inbox;
mod lists;
mod membership;
mod mentions;
mod own_writes;
mod produce_to_history;
mod refusals;
mod requests;
mod sync;
mod unread;
mod walk;

pub(crate) use serde_json::{Value, json};
pub(crate) use tidemark_e2e::{Size, Town, check, check_part, until, without};
