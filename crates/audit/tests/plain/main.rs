//! The audit on plain data: logs from the model, and stores in memory that workers have folded them into.

#![allow(clippy::unwrap_used)]

mod clean;
mod expiry;
mod planted;
mod records;
mod taken;
mod world;
