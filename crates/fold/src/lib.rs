//! The rules of a conversation and the three views, as pure folds over the log.
//!
//! A fold takes the state of one conversation and one record, and gives the state after it. It does no I/O and knows
//! no clock: order comes from offsets, time from the record. What an event means is written down in `docs/rules.md`;
//! every view judges a record by the same code ([`Conversation::fold`]), so that all agree on what was accepted and
//! which seq it took.
//!
//! State is kept in parts that a caller loads on demand. A fold that lacks a part says which ([`Stop::Needs`]) before
//! it has changed anything; the caller loads it and offers the same record again. So what is loaded is only ever a
//! matter of speed, never of meaning.

mod conversation;
mod dedupe;
pub mod inbox;
mod judge;
mod member;
mod message;
mod parts;
#[cfg(feature = "planted-faults")]
pub mod planted;
mod record;
pub mod roaming;
pub mod sessions;
mod settings;
mod view;

/// The version of the folds in this release. A change of what any row or piece holds takes the next number, so that a
/// generation is only ever followed by the fold that began it.
pub const FOLD_VERSION: u16 = 1;

pub use conversation::{Changes, Conversation, Outcome, Stop, Supply};
pub use dedupe::{AcceptedId, DedupeIndex, PieceNo, PieceSpan};
pub use judge::{Accepted, Effect, Reason, creation_digest};
pub use member::{Interval, Leaving, Member};
pub use message::{Message, Stored};
pub use record::Record;
pub use settings::{DedupeWindow, GenerationSettings, LogSettings};
pub use view::{Applied, Head, Need, Needs, Never, Scene, View, ViewName};
