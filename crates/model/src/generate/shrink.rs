//! Makes a failing log as short and plain as it can be.
//!
//! Proptest's own lists try to take each step out once and never come back to it, but a step can often be spared only
//! after another has become plainer. So this goes over all steps, taking out and making plain, until a whole
//! round has changed nothing.

use std::ops::Range;

use proptest::strategy::ValueTree;

use super::{Cast, DICE, Pace, Step, What, scene};
use crate::Logged;

/// One thing to try.
enum Edit {
    /// Take these steps out.
    TakeOut(Range<usize>),
    /// Let everything happen in one conversation.
    InOneConversation,
    /// Let this step send a message.
    Send(usize),
    /// Let a few milliseconds pass before this step.
    Tick(usize),
    /// Let these dice of a step show 0.
    Zero(usize, Range<usize>),
    /// Let a die of a step show half as much.
    Halve(usize, usize),
    /// Let a die of a step show one less.
    Lower(usize, usize),
}

impl Edit {
    /// All there is to try with so many steps, the boldest first. What takes out works from the end, so that
    /// what is still to be tried stands where it stood.
    fn all(steps: usize) -> Vec<Self> {
        let mut edits = Vec::new();
        let mut size = steps;
        while size > 0 {
            edits.extend(
                (0..steps)
                    .step_by(size)
                    .rev()
                    .map(|from| Self::TakeOut(from..from + size)),
            );
            size /= 2;
        }
        edits.push(Self::InOneConversation);
        for step in 0..steps {
            edits.extend([Self::Send(step), Self::Tick(step)]);
            edits.extend([0, 1, 2, 4, 8].map(|from| Self::Zero(step, from..DICE)));
            edits.extend((0..DICE).map(|die| Self::Zero(step, die..die + 1)));
            edits.extend((0..DICE).map(|die| Self::Halve(step, die)));
            edits.extend((0..DICE).map(|die| Self::Lower(step, die)));
        }
        edits
    }

    fn apply(&self, steps: &[Step]) -> Vec<Step> {
        let mut steps = steps.to_vec();
        let len = steps.len();
        match self {
            Self::TakeOut(range) => {
                steps.drain(range.start.min(len)..range.end.min(len));
            }
            Self::InOneConversation => {
                // The first die says in which.
                steps.iter_mut().for_each(|step| step.dice[0] = 0);
            }
            Self::Send(step) => steps
                .iter_mut()
                .skip(*step)
                .take(1)
                .for_each(|step| step.what = What::Send),
            Self::Tick(step) => steps
                .iter_mut()
                .skip(*step)
                .take(1)
                .for_each(|step| step.pace = Pace::Ticks),
            Self::Zero(step, dice) => {
                steps
                    .iter_mut()
                    .skip(*step)
                    .take(1)
                    .for_each(|step| step.dice[dice.clone()].fill(0));
            }
            Self::Halve(step, die) => {
                steps
                    .iter_mut()
                    .skip(*step)
                    .take(1)
                    .for_each(|step| step.dice[*die] /= 2);
            }
            Self::Lower(step, die) => steps.iter_mut().skip(*step).take(1).for_each(|step| {
                step.dice[*die] = step.dice[*die].saturating_sub(1);
            }),
        }
        steps
    }
}

/// A log that proptest can shrink.
pub struct ShrinkingLog {
    cast: Cast,
    /// The plainest steps known to fail.
    failing: Vec<Step>,
    /// The steps to be tested now.
    tried: Vec<Step>,
    /// What is left to try in this round, the next last.
    edits: Vec<Edit>,
    /// Something has become plainer since the round began.
    plainer: bool,
}

impl ShrinkingLog {
    pub(super) fn new(cast: Cast, steps: Vec<Step>) -> Self {
        Self {
            cast,
            failing: steps.clone(),
            tried: steps,
            edits: Vec::new(),
            plainer: true,
        }
    }

    /// Moves on to the next edit that changes anything. Without one, returns to the plainest that fails.
    fn try_next(&mut self) -> bool {
        loop {
            while let Some(edit) = self.edits.pop() {
                self.tried = edit.apply(&self.failing);
                if self.tried != self.failing {
                    return true;
                }
            }
            self.tried.clone_from(&self.failing);
            if !self.plainer {
                return false;
            }
            self.plainer = false;
            self.edits = Edit::all(self.failing.len());
            self.edits.reverse();
        }
    }
}

impl ValueTree for ShrinkingLog {
    type Value = Vec<Logged>;

    fn current(&self) -> Vec<Logged> {
        scene::play(&self.cast, 0, &self.tried)
    }

    /// What was tried fails.
    fn simplify(&mut self) -> bool {
        if self.tried != self.failing {
            self.failing.clone_from(&self.tried);
            self.plainer = true;
        }
        self.try_next()
    }

    /// What was tried passes. There is always something to test next: at the end, what is known to fail.
    fn complicate(&mut self) -> bool {
        if self.tried == self.failing {
            return false;
        }
        self.try_next();
        true
    }
}
