//! One stored row, piece or head, and what the fold gives it.
//!
//! The fold passes through every version that the store may hold: one per event that changes the row, each with that
//! event's offset as its applied offset. A worker writes only the newest of a batch, so which ones it wrote is not
//! known; but what is stored names its own. The stored one is therefore looked up first, and compared at the moment
//! that the fold comes by its applied offset. Nothing else of a version is kept but its offset.

use std::collections::BTreeMap;

use tidemark_event::Offset;

use crate::{FieldDifference, What, compare::field};

/// One row, piece or head.
#[derive(Debug)]
pub(crate) struct Tracked<T> {
    /// What is stored, until it is compared.
    stored: Option<T>,
    /// Its applied offset.
    stored_at: Option<Offset>,
    compared: Comparison,
    /// The first version that the fold made.
    first: Option<Offset>,
    /// The newest one that is no newer than what is stored.
    nearest: Option<Offset>,
    /// The newest one that the checkpoint promises.
    promised: Option<Offset>,
}

#[derive(Debug)]
enum Comparison {
    NotYet,
    Equal,
    Differs(FieldDifference),
}

/// When something that is not there, or old, is no difference.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Allowance {
    /// It may have expired.
    pub(crate) may_have_expired: bool,
    /// From here on this release does not know the log.
    pub(crate) unknown_from: Option<Offset>,
}

impl<T> Default for Tracked<T> {
    fn default() -> Self {
        Self {
            stored: None,
            stored_at: None,
            compared: Comparison::NotYet,
            first: None,
            nearest: None,
            promised: None,
        }
    }
}

impl<T> Tracked<T> {
    /// What is stored, as of its applied offset.
    pub(crate) fn stored(applied: Offset, stored: T) -> Self {
        Self {
            stored: Some(stored),
            stored_at: Some(applied),
            ..Self::default()
        }
    }

    /// Whether there is anything stored.
    pub(crate) fn is_stored(&self) -> bool {
        self.stored_at.is_some()
    }

    /// The fold has come to a version, newer than those before.
    pub(crate) fn note(
        &mut self,
        applied: Offset,
        version: &T,
        is_promised: bool,
        compare: impl FnOnce(&T, &T) -> Option<FieldDifference>,
    ) {
        self.first.get_or_insert(applied);
        if is_promised {
            self.promised = Some(applied);
        }
        if self.stored_at.is_some_and(|stored| applied <= stored) {
            self.nearest = Some(applied);
        }
        if self.stored_at == Some(applied)
            && let Some(stored) = self.stored.take()
        {
            self.compared = match compare(version, &stored) {
                Some(difference) => Comparison::Differs(difference),
                None => Comparison::Equal,
            };
        }
    }

    /// What is wrong, and the applied offset that says where.
    pub(crate) fn verdict(self, allowance: Allowance) -> Option<(Option<Offset>, What)> {
        let Some(stored_at) = self.stored_at else {
            let promised = self.promised.filter(|_| !allowance.may_have_expired)?;
            return Some((Some(promised), What::Missing));
        };
        let what = match self.compared {
            Comparison::Differs(difference) => What::Differs(difference),
            Comparison::Equal => match self.promised {
                Some(promised) if promised > stored_at && !allowance.may_have_expired => {
                    What::Stale { promised }
                }
                _ => return None,
            },
            Comparison::NotYet if allowance.unknown_from.is_some_and(|from| from <= stored_at) => {
                return None;
            }
            Comparison::NotYet => match self.nearest.or(self.first) {
                Some(nearest) => What::Differs(field("applied", nearest, stored_at)),
                None => What::Extra,
            },
        };
        Some((Some(stored_at), what))
    }
}

/// Rows or pieces of one kind, by key.
#[derive(Debug)]
pub(crate) struct TrackedParts<K, T>(BTreeMap<K, Tracked<T>>);

impl<K: Ord + Clone, T> TrackedParts<K, T> {
    /// What is stored of them.
    pub(crate) fn stored(parts: impl IntoIterator<Item = (K, Offset, T)>) -> Self {
        Self(
            parts
                .into_iter()
                .map(|(key, applied, part)| (key, Tracked::stored(applied, part)))
                .collect(),
        )
    }

    /// How many are stored.
    pub(crate) fn count(&self) -> u64 {
        self.0.values().filter(|part| part.is_stored()).count() as u64
    }

    /// As [`Tracked::note`], of the part with this key.
    pub(crate) fn note(
        &mut self,
        key: &K,
        applied: Offset,
        version: &T,
        is_promised: bool,
        compare: impl FnOnce(&T, &T) -> Option<FieldDifference>,
    ) {
        let part = match self.0.get_mut(key) {
            Some(part) => part,
            None => self.0.entry(key.clone()).or_default(),
        };
        part.note(applied, version, is_promised, compare);
    }

    /// What is wrong with each of which something is.
    pub(crate) fn verdicts(
        self,
        allowance: impl Fn(&K) -> Allowance,
    ) -> impl Iterator<Item = (K, Option<Offset>, What)> {
        self.0.into_iter().filter_map(move |(key, part)| {
            let (applied, what) = part.verdict(allowance(&key))?;
            Some((key, applied, what))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(i64) -> Offset = Offset::new;

    /// A row that the fold makes at 3, 5 and 8, of which a checkpoint promises those below 6.
    fn folded(mut tracked: Tracked<u64>) -> Option<(Option<Offset>, What)> {
        for (applied, version, is_promised) in [(3, 30, true), (5, 50, true), (8, 80, false)] {
            tracked.note(AT(applied), &version, is_promised, |wanted, found| {
                (wanted != found).then(|| field("value", wanted, found))
            });
        }
        tracked.verdict(Allowance::default())
    }

    fn check(stored: i64, value: u64, wanted: Option<What>) {
        let found = folded(Tracked::stored(AT(stored), value));
        assert_eq!(found, wanted.map(|what| (Some(AT(stored)), what)));
    }

    #[test]
    fn what_is_stored_is_compared_at_its_own_offset() {
        check(5, 50, None);
        check(8, 80, None);
        check(5, 51, Some(What::Differs(field("value", 50, 51))));
        check(8, 81, Some(What::Differs(field("value", 80, 81))));
    }

    #[test]
    fn what_is_older_than_the_checkpoint_promises_is_stale() {
        check(3, 30, Some(What::Stale { promised: AT(5) }));
    }

    #[test]
    fn what_is_stored_as_of_an_event_that_does_not_concern_it_is_told_by_the_offset() {
        check(6, 50, Some(What::Differs(field("applied", 5, 6))));
        check(9, 90, Some(What::Differs(field("applied", 8, 9))));
        check(1, 10, Some(What::Differs(field("applied", 3, 1))));
    }

    #[test]
    fn what_is_not_stored_is_missing_only_where_it_is_promised() {
        let missing = Some((Some(AT(5)), What::Missing));
        assert_eq!(folded(Tracked::default()), missing);
        let mut ahead = Tracked::default();
        ahead.note(AT(8), &80, false, |_, _| None);
        assert_eq!(ahead.verdict(Allowance::default()), None);
    }

    #[test]
    fn what_the_fold_never_makes_is_extra() {
        let never = Tracked::stored(AT(4), 40_u64);
        assert_eq!(
            never.verdict(Allowance::default()),
            Some((Some(AT(4)), What::Extra))
        );
    }

    #[test]
    fn an_allowance_excuses_what_may_have_expired_or_lies_beyond_what_is_known() {
        let expired = Allowance {
            may_have_expired: true,
            unknown_from: None,
        };
        let mut gone = Tracked::default();
        gone.note(AT(3), &30, true, |_, _| None);
        assert_eq!(gone.verdict(expired), None);
        let unknown = |from| Allowance {
            may_have_expired: false,
            unknown_from: Some(AT(from)),
        };
        let beyond = |from| Tracked::stored(AT(7), 70_u64).verdict(unknown(from));
        assert_eq!(beyond(7), None);
        assert_eq!(beyond(8), Some((Some(AT(7)), What::Extra)));
    }
}
