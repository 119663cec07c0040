//! What a device has not stored yet of one conversation, and where its copies lie. No I/O.

use tidemark_event::{DeviceId, LogTime, Seq};
use tidemark_fold::{
    Member, Stored,
    inbox::{InboxExtra, Period, Place},
};

/// The first seq that a device may not have: after what it has acknowledged, and after `after`, where a pull is
/// already.
pub(super) fn first_pending(place: &Place, device: &DeviceId, after: Seq) -> Seq {
    let acknowledged = place.devices.get(device).copied().unwrap_or(Seq::ZERO);
    acknowledged.max(after).next()
}

/// The seqs from `from` to `last` that belong into the member's inbox, ascending, at most `most`: inside a membership,
/// not cleared, not hidden. What a join has opened of the time before is history, and not for the inbox.
pub(super) fn pending(member: &Member, from: Seq, last: Seq, most: usize) -> Vec<Seq> {
    let from = from.max(member.cleared_to.next());
    let intervals = member.intervals.iter().filter_map(|interval| {
        let to = interval.left.map_or(last, |left| left.until.min(last));
        let from = interval.since.max(from);
        (from <= to).then_some((from, to))
    });
    intervals
        .flat_map(|(from, to)| (from.get()..=to.get()).map(Seq::new))
        .filter(|seq| !member.hidden.contains(seq))
        .take(most)
        .collect()
}

/// Splits ascending seqs by the period their copies are in; those that were never copied, or whose period has expired,
/// are in none.
pub(super) fn by_period(extra: &InboxExtra, seqs: &[Seq]) -> Vec<(Period, (Seq, Seq))> {
    let copied = seqs
        .iter()
        .filter(|seq| extra.copied_to.is_none_or(|to| **seq <= to));
    let mut ranges: Vec<(Period, (Seq, Seq))> = Vec::new();
    for seq in copied {
        let period = extra.periods.iter().rev().find(|(_, first)| first <= seq);
        let Some((period, _)) = period else {
            continue;
        };
        match ranges.last_mut() {
            Some((last, (_, to))) if last == period => *to = *seq,
            _ => ranges.push((*period, (*seq, *seq))),
        }
    }
    ranges
}

/// The rows of `seqs`, in their order, up to the first that is not there or was logged after `until`. `rows` are in
/// any order.
pub(super) fn contiguous(seqs: &[Seq], mut rows: Vec<Stored>, until: LogTime) -> Vec<Stored> {
    rows.sort_unstable_by_key(|row| row.message.seq);
    let mut rows = rows.into_iter().peekable();
    let mut found = Vec::with_capacity(seqs.len());
    for seq in seqs {
        while rows.next_if(|row| row.message.seq < *seq).is_some() {}
        let wanted = |row: &Stored| row.message.seq == *seq && row.message.logged_at <= until;
        match rows.next_if(wanted) {
            Some(row) => found.push(row),
            None => break,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tidemark_event::Offset;
    use tidemark_fold::Interval;

    use super::*;
    use crate::sample;

    fn seqs(range: std::ops::RangeInclusive<u64>) -> Vec<Seq> {
        range.map(Seq::new).collect()
    }

    fn stored(number: u64) -> Stored {
        Stored {
            applied: Offset::new(0),
            message: sample::message(number, "bo"),
        }
    }

    #[test]
    fn a_device_lacks_what_is_above_its_acknowledgement_and_behind_the_pull() {
        let (phone, pad) = (
            DeviceId::new("phone").unwrap(),
            DeviceId::new("pad").unwrap(),
        );
        let place = Place {
            applied: Offset::new(0),
            member: sample::member(),
            devices: BTreeMap::from([(phone.clone(), sample::seq(7))]),
            copied_to: None,
        };
        assert_eq!(first_pending(&place, &phone, Seq::ZERO), sample::seq(8));
        assert_eq!(
            first_pending(&place, &phone, sample::seq(9)),
            sample::seq(10)
        );
        assert_eq!(first_pending(&place, &pad, Seq::ZERO), sample::seq(1));
    }

    #[test]
    fn an_inbox_holds_memberships_and_never_what_a_join_has_opened() {
        let mut member = sample::former_member(12);
        member.intervals[0].since = sample::seq(5);
        member.intervals.push(Interval {
            since: sample::seq(15),
            joined: Offset::new(7),
            left: None,
        });
        member.opened = Some(Offset::new(0));
        member.hidden = [sample::seq(11)].into();
        let last = sample::seq(16);
        let all = pending(&member, Seq::FIRST, last, 99);
        assert_eq!(all, [5, 6, 7, 8, 9, 10, 12, 15, 16].map(Seq::new));
        assert_eq!(
            pending(&member, sample::seq(10), last, 2),
            [10, 12].map(Seq::new)
        );
        member.cleared_to = sample::seq(12);
        assert_eq!(
            pending(&member, Seq::FIRST, last, 99),
            [15, 16].map(Seq::new)
        );
        assert_eq!(pending(&member, Seq::FIRST, sample::seq(14), 99), []);
    }

    #[test]
    fn copies_are_looked_for_in_their_periods() {
        let extra = InboxExtra {
            periods: vec![
                (Period::new(7), sample::seq(5)),
                (Period::new(9), sample::seq(10)),
            ],
            copied_to: Some(sample::seq(12)),
        };
        let ranges = by_period(&extra, &seqs(3..=14));
        let expected = [
            (Period::new(7), (sample::seq(5), sample::seq(9))),
            (Period::new(9), (sample::seq(10), sample::seq(12))),
        ];
        assert_eq!(ranges, expected);
        assert_eq!(by_period(&InboxExtra::default(), &seqs(1..=3)), []);
    }

    #[test]
    fn a_page_never_leaps_over_what_is_missing_and_ends_where_its_pull_began() {
        let rows = || vec![stored(3), stored(1), stored(2), stored(5)];
        let seqs_of = |rows: Vec<Stored>| -> Vec<u64> {
            rows.iter().map(|row| row.message.seq.get()).collect()
        };
        let late = LogTime::from_millis(i64::MAX);
        assert_eq!(seqs_of(contiguous(&seqs(1..=5), rows(), late)), [1, 2, 3]);
        assert_eq!(seqs_of(contiguous(&seqs(2..=3), rows(), late)), [2, 3]);
        let second = LogTime::from_millis(2_000);
        assert_eq!(seqs_of(contiguous(&seqs(1..=5), rows(), second)), [1, 2]);
    }
}
