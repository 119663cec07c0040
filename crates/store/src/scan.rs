//! Ranges of tokens: how a whole table is read in parts, each from the nodes that hold it.

use std::{fmt, num::NonZeroU32};

/// A range of the tokens that table partitions hash to. Disjoint ranges may be read beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRange {
    /// Exclusive.
    after: i64,
    /// Inclusive.
    to: i64,
}

impl TokenRange {
    /// Every token. No partition hashes to the least number.
    pub const ALL: Self = Self {
        after: i64::MIN,
        to: i64::MAX,
    };

    /// Cuts all tokens into `parts` ranges of about one length.
    pub fn split(parts: NonZeroU32) -> impl Iterator<Item = Self> {
        let parts = i128::from(parts.get());
        let length = i128::from(i64::MAX) - i128::from(i64::MIN);
        let bound = move |part: i128| {
            let token = i128::from(i64::MIN) + length * part / parts;
            i64::try_from(token).unwrap_or(i64::MAX)
        };
        (0..parts).map(move |part| Self {
            after: bound(part),
            to: bound(part + 1),
        })
    }

    /// As statements bind it.
    pub(crate) const fn bounds(self) -> (i64, i64) {
        (self.after, self.to)
    }
}

impl fmt::Display for TokenRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tokens above {} up to {}", self.after, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_meet_and_leave_out_nothing() {
        for parts in [1, 2, 3, 7, 1_000] {
            let ranges: Vec<TokenRange> =
                TokenRange::split(NonZeroU32::new(parts).unwrap()).collect();
            assert_eq!(ranges.len(), parts as usize);
            assert_eq!(ranges[0].after, TokenRange::ALL.after);
            assert_eq!(ranges[ranges.len() - 1].to, TokenRange::ALL.to);
            assert!(ranges.windows(2).all(|pair| pair[0].to == pair[1].after));
            assert!(ranges.iter().all(|range| range.after < range.to));
        }
    }
}
