//! sessions: a row per (user, conversation), with numbers that are always true.
//!
//! Unread is the size of a set, never a counter that drifts: the seqs that count, above the read seq, inside the
//! present membership, less the user's own and hidden ones. Which seqs count is kept in [`Block`]s, the newest in the
//! head. A row keeps the number as of its applied offset; adding a message to it is the only step taken without the
//! blocks, and [`Tally::of`] can always derive it anew.
//!
//! Up to the fan-out limit every member's row is brought up to date by every message ([`Mode::FannedOut`]). Above it a
//! message costs the head, the sender's row and the rows of those it mentions; a reader combines row, head and blocks
//! ([`Mode::Combined`]).

mod block;
mod counting;
mod fold;
mod joining;
mod messaging;
mod own;
mod row;
mod tally;

use serde::{Deserialize, Serialize};
use tidemark_event::{LogTime, Seq};

pub use block::{Block, BlockNo, Entry, Mention};
pub use row::{Mode, Newest, Session};
pub use tally::Tally;

/// The sessions view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sessions;

/// What sessions keeps in a conversation's head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsExtra {
    /// How the rows of present members are kept.
    pub mode: Mode,
    /// The block that the newest message is in.
    pub block: Block,
    /// The newest message.
    pub newest: Option<Newest>,
    /// Log time of the newest message; before any, of the creation.
    pub last_active: LogTime,
}

/// The most mentions that a session names; its count is exact whatever their number.
pub const MAX_MENTIONS_NAMED: usize = 100;

/// The longest text and names of a newest message, in bytes, that a row carries whole.
pub const MAX_NEWEST_BYTES: usize = 1_024;

/// The characters of a preview.
pub const PREVIEW_CHARACTERS: usize = 100;

/// The first seq that can count for somebody whose read position, clear and membership are these.
pub(crate) fn first_counting(read_seq: Seq, cleared_to: Seq, since: Seq) -> Seq {
    read_seq.next().max(cleared_to.next()).max(since)
}
