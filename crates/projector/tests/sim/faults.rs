//! What befalls a run: a list drawn from the seed, so that a failing run can be tried again without some of it.

use crate::random::Random;

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The step at which it comes.
    pub(crate) at: usize,
    pub(crate) kind: Kind,
    /// Picks its victim and how bad it is, once it is known what there is to pick from.
    pub(crate) die: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A process dies. What it had sent arrives, in part, late, or never.
    Crash,
    /// A process stops as SIGSTOP makes it, for a while; the group may put it out meanwhile.
    Freeze,
    /// A request gets no answer. It was served, or not, or will be.
    Lose,
    /// One request is served much later than others.
    Slow,
    /// No server answers for a while.
    Away,
    /// Dead letters cannot be sent for a while.
    LettersAway,
    /// The group loses sight of a member that works on.
    PutOut,
    /// A partition is moved.
    Move,
    /// A process is asked to stop.
    Stop,
    /// All processes die.
    CrashAll,
    /// A snapshot of the store is made.
    Snapshot,
    /// All processes die, and the store is set back to the newest snapshot.
    Restore,
}

impl Kind {
    /// Whether it counts as a crash point: a crash, a freeze or a lost write.
    pub(crate) fn is_crash_point(self) -> bool {
        matches!(self, Self::Crash | Self::Freeze | Self::Lose)
    }
}

/// Kinds and how often each is drawn, beside a weight that is drawn for each run.
const KINDS: [(u64, Kind); 12] = [
    (10, Kind::Crash),
    (10, Kind::Freeze),
    (20, Kind::Lose),
    (6, Kind::Slow),
    (1, Kind::Away),
    (1, Kind::LettersAway),
    (5, Kind::PutOut),
    (5, Kind::Move),
    (2, Kind::Stop),
    (1, Kind::CrashAll),
    (1, Kind::Snapshot),
    (1, Kind::Restore),
];

/// The faults of a run, in order. The last step of them is about `steps`.
pub(crate) fn draw(random: &mut Random, count: usize, steps: usize) -> Vec<Fault> {
    // So that runs differ: some are full of crashes, some of lost writes, some of moves.
    let weights: Vec<(u64, Kind)> = KINDS
        .iter()
        .map(|(weight, kind)| (1 + weight * random.below(5) as u64, *kind))
        .collect();
    draw_of(random, &weights, count, steps)
}

/// Faults of these kinds only, each as often as its weight says.
pub(crate) fn draw_of(
    random: &mut Random,
    weights: &[(u64, Kind)],
    count: usize,
    steps: usize,
) -> Vec<Fault> {
    let all: u64 = weights.iter().map(|(weight, _)| weight).sum();
    let mut faults: Vec<Fault> = (0..count)
        .map(|_| {
            let mut left = random.next() % all;
            let drawn = weights.iter().find(|(weight, _)| {
                let is_it = left < *weight;
                left = left.saturating_sub(*weight);
                is_it
            });
            Fault {
                at: 1 + random.below(steps),
                kind: drawn.map_or(Kind::Lose, |(_, kind)| *kind),
                die: random.next(),
            }
        })
        .collect();
    faults.sort_by_key(|fault| fault.at);
    faults
}
