//! From the log to the views while things go wrong: records that are no events, workers that die, servers that go away.
//!
//! The tests use one town in turn, and each leaves it whole; but for those in [`wrecks`]. What it does to the town it announces, where that is
//! logged at WARN or ERROR; everything else that is logged so fails it. Most end with an audit: whatever happened,
//! everybody sees what the log says.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod checkpoints;
mod dead_letters;
mod servers_away;
mod transactions;
mod workers;
mod wrecks;

pub(crate) use serde_json::{Value, json};
pub(crate) use tidemark_e2e::{
    PATIENCE, Process, Scene, Settings, Size, Town, View, check_part, kafka, until,
};
