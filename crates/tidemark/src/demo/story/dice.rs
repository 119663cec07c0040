//! Chance that is the same every time.
//!
//! SplitMix64, written out: the generators of a crate may change between its releases, and with them every story.

/// A sequence of numbers that looks random and follows from its seed alone.
#[derive(Debug, Clone)]
pub(super) struct Dice {
    state: u64,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Dice of their own for one part of the story, so that a change in another part changes nothing in this one.
    pub(super) fn of_part(seed: u64, part: &str) -> Self {
        // FNV-1a: a part's name as a number.
        let name = part.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut dice = Self::new(seed ^ name);
        Self::new(dice.next())
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 for an `end` of 0. The bias of a modulus by a small number does not matter here.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// A number from `first` up to, and without, `end`.
    pub(super) fn between(&mut self, first: i64, end: i64) -> i64 {
        let width = end.saturating_sub(first).max(1).unsigned_abs();
        first.saturating_add_unsigned(self.next() % width)
    }

    /// True in so many of a hundred cases.
    pub(super) fn percent(&mut self, of_a_hundred: usize) -> bool {
        self.below(100) < of_a_hundred
    }

    /// One of them. There must be one.
    pub(super) fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// So many of them, each at most once, in a new order; all where there are fewer.
    pub(super) fn some_of<T: Clone>(&mut self, choices: &[T], count: usize) -> Vec<T> {
        let mut left = choices.to_vec();
        let count = count.min(left.len());
        for index in 0..count {
            let other = index + self.below(left.len() - index);
            left.swap(index, other);
        }
        left.truncate(count);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        let mut dice = Dice::new(1_234_567);
        // The reference values of SplitMix64.
        assert_eq!(
            [dice.next(), dice.next(), dice.next()],
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn some_of_them_are_different_ones() {
        let choices: Vec<usize> = (0..50).collect();
        let mut some = Dice::new(7).some_of(&choices, 20);
        some.sort_unstable();
        some.dedup();
        assert_eq!(some.len(), 20);
        assert_eq!(Dice::new(7).some_of(&choices, 99).len(), 50);
    }
}
