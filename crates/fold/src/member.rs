//! What one user may see of one conversation: memberships, a clear, hidden messages.
//!
//! A member row is a piece of state: a crash may leave it ahead of the head. So every membership carries the offsets
//! that began and ended it, and a judge asks *as of* an event's own offset, where later facts decide nothing. Facts
//! are never removed. What was cleared and hidden is asked by readers only, and needs no such care.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tidemark_event::{Offset, Seq};

use crate::Applied;

/// One user's place in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The newest event folded into this piece.
    pub applied: Offset,
    /// Memberships, oldest first. Only the last can be without an end.
    pub intervals: Vec<Interval>,
    /// The join that opened what was before the first join, if one did.
    pub opened: Option<Offset>,
    /// Everything up to here was cleared by the user; 0 for never.
    pub cleared_to: Seq,
    /// Messages hidden by the user, above `cleared_to`.
    pub hidden: BTreeSet<Seq>,
}

/// One membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// The first seq of the membership: last + 1 at joining.
    pub since: Seq,
    /// The event that began it.
    pub joined: Offset,
    /// How it ended, if it has.
    pub left: Option<Leaving>,
}

/// The end of a membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// The last seq of the membership: `since − 1` where no message fell into it.
    pub until: Seq,
    /// The event that ended it.
    pub at: Offset,
}

impl Interval {
    fn is_present_as_of(&self, event: Offset) -> bool {
        #[cfg(feature = "planted-faults")]
        if crate::planted::is_planted(crate::planted::Fault::MembershipAheadOfHead) {
            return self.left.is_none();
        }
        self.joined < event && self.left.is_none_or(|left| left.at >= event)
    }

    fn holds(&self, seq: Seq) -> bool {
        self.since <= seq && self.left.is_none_or(|left| seq <= left.until)
    }

    fn held_as_of(&self, seq: Seq, event: Offset) -> bool {
        self.joined < event
            && self.since <= seq
            && self
                .left
                .is_none_or(|left| left.at >= event || seq <= left.until)
    }
}

impl Applied for Member {
    fn applied(&self) -> Offset {
        self.applied
    }

    fn stamp(&mut self, offset: Offset) {
        self.applied = offset;
    }
}

impl Member {
    /// A user whose first membership begins with the event at `joined`.
    pub(crate) fn joining(joined: Offset, since: Seq, opens: bool) -> Self {
        let mut member = Self {
            applied: joined,
            intervals: Vec::new(),
            opened: None,
            cleared_to: Seq::ZERO,
            hidden: BTreeSet::new(),
        };
        member.join(joined, since, opens);
        member
    }

    pub(crate) fn join(&mut self, joined: Offset, since: Seq, opens: bool) {
        self.applied = joined;
        self.intervals.push(Interval {
            since,
            joined,
            left: None,
        });
        if opens && self.opened.is_none() {
            self.opened = Some(joined);
        }
    }

    pub(crate) fn leave(&mut self, at: Offset, until: Seq) {
        self.applied = at;
        if let Some(interval) = self.intervals.last_mut() {
            interval.left = Some(Leaving { until, at });
        }
    }

    pub(crate) fn clear(&mut self, at: Offset, to: Seq) {
        self.applied = at;
        self.cleared_to = self.cleared_to.max(to);
        self.hidden = self.hidden.split_off(&self.cleared_to.next());
    }

    pub(crate) fn hide(&mut self, at: Offset, seq: Seq) {
        self.applied = at;
        if seq > self.cleared_to {
            self.hidden.insert(seq);
        }
    }

    /// Whether the user is a member just before the event at `event`.
    pub fn is_present_as_of(&self, event: Offset) -> bool {
        self.intervals
            .iter()
            .any(|interval| interval.is_present_as_of(event))
    }

    /// Whether the user had joined, even if they have left since, before the event at `event`.
    pub fn had_joined_as_of(&self, event: Offset) -> bool {
        self.intervals
            .iter()
            .any(|interval| interval.joined < event)
    }

    /// Whether `seq` fell into a membership known just before the event at `event`.
    pub fn held_as_of(&self, seq: Seq, event: Offset) -> bool {
        self.intervals
            .iter()
            .any(|interval| interval.held_as_of(seq, event))
    }

    /// Whether the memberships known just before the event at `event` let the user see `seq`; `opens` is whether that
    /// event opens what was before the first of them.
    pub(crate) fn may_see_as_of(&self, seq: Seq, event: Offset, opens: bool) -> bool {
        let is_open = opens || self.opened.is_some_and(|at| at < event);
        let is_before = self
            .intervals
            .first()
            .is_some_and(|first| first.joined < event && seq < first.since);
        is_open && is_before || self.held_as_of(seq, event)
    }

    /// Whether the user is a member now.
    pub fn is_present(&self) -> bool {
        self.intervals
            .last()
            .is_some_and(|interval| interval.left.is_none())
    }

    /// The first seq of the present membership, if there is one.
    pub fn since(&self) -> Option<Seq> {
        self.intervals
            .last()
            .filter(|interval| interval.left.is_none())
            .map(|interval| interval.since)
    }

    /// Whether the user's memberships let them see `seq`, whatever they cleared or hid.
    pub fn may_see(&self, seq: Seq) -> bool {
        let Some(first) = self.intervals.first() else {
            return false;
        };
        self.opened.is_some() && seq < first.since
            || self.intervals.iter().any(|interval| interval.holds(seq))
    }

    /// Whether `seq` shows in the user's history: seen, not cleared, not hidden.
    pub fn sees(&self, seq: Seq) -> bool {
        seq > self.cleared_to && self.may_see(seq) && !self.hidden.contains(&seq)
    }

    /// The ranges of seqs, both ends inclusive and ascending, that memberships and the clear let the user see in a
    /// conversation that ends at `last`. Hidden messages are still inside.
    pub fn visible_ranges(&self, last: Seq) -> Vec<(Seq, Seq)> {
        let Some(first) = self.intervals.first() else {
            return Vec::new();
        };
        let before = self.opened.map(|_| (Seq::FIRST, first.since.previous()));
        let memberships = self.intervals.iter().map(|interval| {
            (
                interval.since,
                interval.left.map_or(last, |left| left.until.min(last)),
            )
        });
        let mut ranges: Vec<(Seq, Seq)> = Vec::new();
        for (from, to) in before.into_iter().chain(memberships) {
            let from = from.max(self.cleared_to.next());
            let to = to.min(last);
            if from > to {
                continue;
            }
            match ranges.last_mut() {
                Some(previous) if previous.1.next() >= from => previous.1 = previous.1.max(to),
                _ => ranges.push((from, to)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(number: u64) -> Seq {
        Seq::new(number)
    }

    fn rejoined() -> Member {
        let mut member = Member::joining(Offset::new(10), seq(5), false);
        member.leave(Offset::new(20), seq(8));
        member.join(Offset::new(30), seq(12), false);
        member
    }

    #[test]
    fn presence_is_judged_as_of_the_event_whatever_the_piece_knows_of_later() {
        let member = rejoined();
        let present: Vec<i64> = (0..40)
            .filter(|offset| member.is_present_as_of(Offset::new(*offset)))
            .collect();
        assert_eq!(present, (11..=20).chain(31..40).collect::<Vec<_>>());
    }

    #[test]
    fn the_gap_between_two_memberships_stays_hidden_and_the_past_does_unless_opened() {
        let mut member = rejoined();
        assert_eq!(
            member.visible_ranges(seq(14)),
            [(seq(5), seq(8)), (seq(12), seq(14))]
        );
        member.leave(Offset::new(40), seq(14));
        member.join(Offset::new(50), seq(20), true);
        assert_eq!(
            member.visible_ranges(seq(20)),
            [(seq(1), seq(8)), (seq(12), seq(14)), (seq(20), seq(20))]
        );
        for number in 1..=20 {
            let in_ranges = member
                .visible_ranges(seq(20))
                .iter()
                .any(|(from, to)| (*from..=*to).contains(&seq(number)));
            assert_eq!(member.sees(seq(number)), in_ranges, "{number}");
        }
    }

    #[test]
    fn a_clear_hides_all_up_to_it() {
        let mut member = rejoined();
        member.hide(Offset::new(35), seq(13));
        member.clear(Offset::new(36), seq(13));
        assert_eq!(member.visible_ranges(seq(14)), [(seq(14), seq(14))]);
        assert!(member.hidden.is_empty());
    }
}
