//! Settings that decide what a fold does. They are recorded in the store and never a worker's own.

use serde::{Deserialize, Serialize};

/// How long an accepted event id keeps its like from being accepted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DedupeWindow {
    /// Milliseconds of log time.
    pub millis: i64,
    /// The most ids of one conversation that are remembered: the newest ones.
    pub ids: u64,
}

impl Default for DedupeWindow {
    fn default() -> Self {
        Self {
            millis: 24 * 60 * 60 * 1_000,
            ids: 100_000,
        }
    }
}

/// Settings of the log: the same for every view and generation, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSettings {
    /// The log topic's partitions. More would move keys, and order with them.
    pub partitions: u16,
    /// The dedupe window of every conversation.
    pub dedupe: DedupeWindow,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self {
            partitions: 12,
            dedupe: DedupeWindow::default(),
        }
    }
}

/// Settings of one generation of a view: changed by a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationSettings {
    /// Seqs in one partition of the roaming table.
    pub bucket_seqs: u64,
    /// Up to so many members a message is copied into each member's inbox.
    pub copy_limit: u32,
    /// Up to so many members each member's session row is brought up to date by every message.
    pub fan_out_limit: u32,
    /// Milliseconds of log time whose inbox copies share a table partition and expire together: a week.
    pub inbox_period_millis: i64,
    /// Milliseconds that inbox copies are kept after the end of their period.
    pub inbox_ttl_millis: i64,
    /// Seqs in one block: the piece of state that keeps which messages count.
    pub block_seqs: u64,
    /// Event ids in one dedupe piece.
    pub piece_ids: u64,
}

impl Default for GenerationSettings {
    fn default() -> Self {
        const DAY: i64 = 24 * 60 * 60 * 1_000;
        Self {
            bucket_seqs: 1_000,
            copy_limit: 20,
            fan_out_limit: 500,
            inbox_period_millis: 7 * DAY,
            inbox_ttl_millis: 30 * DAY,
            block_seqs: 128,
            piece_ids: 4_096,
        }
    }
}
