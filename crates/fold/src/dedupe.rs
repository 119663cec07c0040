//! Which event ids a conversation has accepted lately.
//!
//! Ids are kept in pieces that are only ever appended to. The head keeps an index of the pieces that can still hold
//! an id inside the window; a piece that has left it may be deleted once a checkpoint past that point is
//! acknowledged. Whether an id is a duplicate is decided by the facts kept with it and by the event's own offset and
//! log time alone: neither a piece left ahead of the head nor one not yet deleted decides anything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidemark_event::{EventId, LogTime, Offset, Seq};

use crate::DedupeWindow;

/// The number of a dedupe piece within its conversation, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PieceNo(u64);

impl PieceNo {
    /// The first piece of a conversation.
    pub const FIRST: Self = Self(0);

    /// Takes a stored number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// One accepted event id, as its piece keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AcceptedId {
    /// The id.
    pub id: EventId,
    /// The record that was accepted with it.
    pub offset: Offset,
    /// Its place among the conversation's accepted ids, from 0.
    pub ordinal: u64,
    /// Log time of that record.
    pub log_time: LogTime,
    /// The seq that the event took, if it was a message.
    pub seq: Option<Seq>,
}

/// What the head keeps of the dedupe pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DedupeIndex {
    /// Ids accepted so far.
    pub accepted: u64,
    /// Pieces that may hold an id inside the window, oldest first. The last one is appended to.
    pub live: Vec<PieceSpan>,
}

/// What the head keeps of one dedupe piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceSpan {
    /// Its number.
    pub no: PieceNo,
    /// Ordinal of its first id.
    pub first_ordinal: u64,
    /// Log time of its first id.
    pub first_time: LogTime,
    /// Log time of its newest id.
    pub last_time: LogTime,
}

impl DedupeIndex {
    /// Takes in the id of an accepted event. Gives the id with its facts, the piece it belongs to, and the pieces
    /// that have left the window by it.
    pub(crate) fn accept(
        &mut self,
        window: DedupeWindow,
        piece_ids: u64,
        id: EventId,
        at: (Offset, LogTime),
        seq: Option<Seq>,
    ) -> (PieceNo, AcceptedId, Vec<PieceNo>) {
        let (offset, log_time) = at;
        let accepted = AcceptedId {
            id,
            offset,
            ordinal: self.accepted,
            log_time,
            seq,
        };
        self.accepted += 1;
        let no = self.piece_for(accepted.ordinal, log_time, window, piece_ids);
        (no, accepted, self.leave(window, log_time))
    }

    /// The piece that the id with this ordinal goes to. A new piece begins when the last is full, or as old as the
    /// window: so even a quiet conversation's old ids are left behind.
    fn piece_for(
        &mut self,
        ordinal: u64,
        log_time: LogTime,
        window: DedupeWindow,
        piece_ids: u64,
    ) -> PieceNo {
        if let Some(last) = self.live.last_mut() {
            let is_full = ordinal - last.first_ordinal >= piece_ids;
            let is_old =
                log_time.millis().saturating_sub(last.first_time.millis()) >= window.millis;
            if !is_full && !is_old {
                last.last_time = log_time;
                return last.no;
            }
        }
        let no = self
            .live
            .last()
            .map_or(PieceNo::FIRST, |last| last.no.next());
        self.live.push(PieceSpan {
            no,
            first_ordinal: ordinal,
            first_time: log_time,
            last_time: log_time,
        });
        no
    }

    /// Takes the pieces out of the index of which no id can be inside the window any more.
    fn leave(&mut self, window: DedupeWindow, now: LogTime) -> Vec<PieceNo> {
        let mut left = Vec::new();
        // The last piece was just appended to, so it stays and the numbering goes on from it.
        while let [first, second, ..] = self.live.as_slice() {
            let last_ordinal = second.first_ordinal - 1;
            if is_inside(window, last_ordinal, first.last_time, self.accepted, now) {
                break;
            }
            left.push(first.no);
            self.live.remove(0);
        }
        left
    }
}

/// Whether an id with these facts is inside the window of an event at log time `now` before which `accepted` ids
/// had been accepted.
fn is_inside(
    window: DedupeWindow,
    ordinal: u64,
    log_time: LogTime,
    accepted: u64,
    now: LogTime,
) -> bool {
    let is_young = now.millis().saturating_sub(log_time.millis()) < window.millis;
    let is_among_newest = accepted.saturating_sub(ordinal) <= window.ids;
    is_young && is_among_newest
}

#[cfg(feature = "planted-faults")]
fn planted(offset: Offset, now: LogTime) -> (Offset, LogTime) {
    use crate::planted::{Fault, clock, is_planted};
    if is_planted(Fault::DedupePieceWithoutOffset) {
        return (Offset::new(i64::MAX), now);
    }
    if is_planted(Fault::DedupeByWallClock) {
        return (offset, clock());
    }
    (offset, now)
}

/// The ids of one loaded piece. An id may stand there twice: accepted again after its window had passed.
pub(crate) type PieceIds = BTreeMap<EventId, Vec<AcceptedId>>;

/// Whether `id` was accepted before the event at `offset`, inside the window as of that event.
pub(crate) fn is_duplicate(
    piece: &PieceIds,
    window: DedupeWindow,
    accepted: u64,
    id: EventId,
    (offset, now): (Offset, LogTime),
) -> bool {
    #[cfg(feature = "planted-faults")]
    let (offset, now) = planted(offset, now);
    piece.get(&id).is_some_and(|facts| {
        facts.iter().any(|fact| {
            fact.offset < offset && is_inside(window, fact.ordinal, fact.log_time, accepted, now)
        })
    })
}
