//! What runs did, added up.

use std::{
    collections::HashSet,
    fmt::{self, Debug, Formatter},
    hash::{DefaultHasher, Hash, Hasher},
};

use crate::faults::Kind;

/// What runs did.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) runs: u64,
    pub(crate) steps: u64,
    pub(crate) events: u64,
    /// Crashes, freezes and lost requests, as drawn.
    pub(crate) crash_points: u64,
    pub(crate) crashes: u64,
    pub(crate) wakings: u64,
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) restored: u64,
    /// Turns in which a worker was told that it was overtaken.
    pub(crate) overtaken: u64,
    pub(crate) reads: u64,
    /// Of each crash point, what its victim was waiting for and how far the view was: as hashes.
    states: HashSet<u64>,
}

impl Tally {
    pub(crate) fn of_one_run(events: usize) -> Self {
        Self {
            runs: 1,
            events: events as u64,
            ..Self::default()
        }
    }

    pub(crate) fn crash_point(&mut self, kind: Kind, doing: &[String], state: &impl Hash) {
        self.crash_points += 1;
        let mut hash = DefaultHasher::new();
        (kind as u8, doing).hash(&mut hash);
        state.hash(&mut hash);
        self.states.insert(hash.finish());
    }

    /// Distinct pairs of a step that was interrupted and the state it was interrupted in.
    pub(crate) fn states(&self) -> usize {
        self.states.len()
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.events += other.events;
        self.crash_points += other.crash_points;
        self.crashes += other.crashes;
        self.wakings += other.wakings;
        self.lost += other.lost;
        self.late += other.late;
        self.restored += other.restored;
        self.overtaken += other.overtaken;
        self.reads += other.reads;
        self.states.extend(other.states);
    }
}

impl Debug for Tally {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs of {} events and {} steps; {} crash points in {} distinct states ({} crashes, {} wakings, {} \
             requests lost, {} served late), {} times restored, {} turns overtaken, {} times read",
            self.runs,
            self.events,
            self.steps,
            self.crash_points,
            self.states(),
            self.crashes,
            self.wakings,
            self.lost,
            self.late,
            self.restored,
            self.overtaken,
            self.reads
        )
    }
}
