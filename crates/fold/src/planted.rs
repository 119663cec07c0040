//! Faults that tests plant, to show that their checkers find them. Compiled with the feature `planted-faults` only, and
//! even then none is there until a test plants it, in its own thread.

use std::cell::Cell;

use tidemark_event::LogTime;

/// A fault that somebody who writes such a system may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The checkpoint is written before the rows that it stands for.
    CheckpointBeforeRows,
    /// A head is written before the pieces that it stands for.
    HeadBeforePieces,
    /// A stored event id counts whatever offset it was accepted at.
    DedupePieceWithoutOffset,
    /// A membership that a crash left ahead of the head is believed.
    MembershipAheadOfHead,
    /// A row is not inserted where a later event of the same batch makes it pointless.
    RowLaterRemoved,
    /// Rows are written with the time at which they are written.
    RowsWithoutTimestamps,
    /// A row is changed by an event that it already has.
    NoAppliedOffset,
    /// A partition that is taken away is checkpointed where it has read to, not where it has flushed to.
    CommitOnRevokeWithoutFlush,
    /// A time in a row is that of folding, not of the record.
    WallClockInFold,
    /// What is in memory of a partition is kept until the partition comes back.
    CacheKeptAcrossRebalance,
    /// The dedupe window is judged by the time of folding.
    DedupeByWallClock,
    /// What is absent for good is written as null.
    NullInsteadOfUnset,
    /// Rows whose write failed are tried again after the heads are written.
    RetryThatReorders,
    /// A checkpoint moves over offsets that the client has read to, whoever folded what was read.
    HoleOverUnfoldedRecords,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::CheckpointBeforeRows,
        Self::HeadBeforePieces,
        Self::DedupePieceWithoutOffset,
        Self::MembershipAheadOfHead,
        Self::RowLaterRemoved,
        Self::RowsWithoutTimestamps,
        Self::NoAppliedOffset,
        Self::CommitOnRevokeWithoutFlush,
        Self::WallClockInFold,
        Self::CacheKeptAcrossRebalance,
        Self::DedupeByWallClock,
        Self::NullInsteadOfUnset,
        Self::RetryThatReorders,
        Self::HoleOverUnfoldedRecords,
    ];
}

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    static TICKS: Cell<i64> = const { Cell::new(0) };
}

/// Plants a fault in this thread, or takes it out.
pub fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
    TICKS.set(0);
}

/// Whether this fault is planted in this thread.
pub fn is_planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// A clock that goes on by itself, the same in every run: a number greater than before.
pub fn ticks() -> i64 {
    TICKS.set(TICKS.get() + 1);
    TICKS.get()
}

/// What that clock shows as a time: 20 ms a tick.
pub fn clock() -> LogTime {
    LogTime::from_millis(ticks() * 20)
}
