//! Logs drawn at random: operations, not states.
//!
//! What is drawn is a list of steps. A step is what somebody is about to do and a few dice. Only when a log is
//! made of the steps are the dice read, against what the log has come to by then: "a message near the end" rather
//! than "seq 17". So most events are accepted, and a log that proptest has shrunk by taking out steps still
//! makes sense. A die that shows 0 always means the plainest choice.
//!
//! Steps are drawn from a seed. [`logs`] takes its seeds from proptest, so that what fails shrinks;
//! [`log_from_seed`] takes one from whoever wants the same log again.

mod acts;
mod breaches;
mod scene;
mod shrink;

use proptest::{
    prelude::any,
    strategy::{NewTree, Strategy, ValueTree},
    test_runner::TestRunner,
};
use tidemark_event::{ConversationId, DeviceId, UserId};

pub use shrink::ShrinkingLog;

use crate::{
    Logged, Settings,
    story::{conversation, device, user},
};

/// Who takes part in the logs, and the settings whose borders they walk along.
#[derive(Debug, Clone)]
pub struct Cast {
    /// How many conversations there are, direct chats among them.
    pub conversations: usize,
    /// How many users there are.
    pub users: usize,
    /// How many devices each has.
    pub devices: usize,
    /// What the logs' model depends on.
    pub settings: Settings,
    /// What it must not depend on: sessions of conversations that ever had more members may be kept otherwise.
    pub fan_out_limit: usize,
}

impl Cast {
    /// Small enough that everything meets everything within a few dozen events.
    pub const SMALL: Self = Self {
        conversations: 3,
        users: 6,
        devices: 2,
        settings: Settings {
            dedupe_window_millis: 1_000,
            dedupe_max_ids: 8,
            copy_limit: 3,
        },
        fan_out_limit: 4,
    };

    /// Every user, a stranger to all conversations not counted.
    pub fn users(&self) -> Vec<UserId> {
        const NAMES: [&str; 6] = ["anna", "bo", "cem", "dora", "emil", "fay"];
        let name = |number: usize| match NAMES.get(number) {
            Some(name) => (*name).to_owned(),
            None => format!("user-{number}"),
        };
        (0..self.users).map(|number| user(name(number))).collect()
    }

    /// Every conversation that may come to exist, direct chats among them.
    pub fn conversations(&self) -> Vec<ConversationId> {
        (1..=self.conversations)
            .map(|number| conversation(format!("c{number}")))
            .collect()
    }

    /// Every device; each user has one of each name.
    pub fn devices(&self) -> Vec<DeviceId> {
        (1..=self.devices)
            .map(|number| device(format!("device-{number}")))
            .collect()
    }

    /// Logs of up to `max_len` events.
    pub fn logs(&self, max_len: usize) -> Logs {
        Logs {
            cast: self.clone(),
            max_len,
        }
    }

    /// The log of `len` events that this seed stands for. Event ids of different seeds differ.
    pub fn log_from_seed(&self, seed: u64, len: usize) -> Vec<Logged> {
        let mut random = SplitMix64(seed);
        let steps = (0..len)
            .map(|_| Step::from_random(&mut random))
            .collect::<Vec<_>>();
        scene::play(self, seed, &steps)
    }
}

/// Logs of up to `max_len` events among [`Cast::SMALL`].
pub fn logs(max_len: usize) -> Logs {
    Cast::SMALL.logs(max_len)
}

/// The log of `len` events among [`Cast::SMALL`] that this seed stands for.
pub fn log_from_seed(seed: u64, len: usize) -> Vec<Logged> {
    Cast::SMALL.log_from_seed(seed, len)
}

/// The strategy of [`Cast::logs`].
#[derive(Debug, Clone)]
pub struct Logs {
    cast: Cast,
    max_len: usize,
}

impl Strategy for Logs {
    type Tree = ShrinkingLog;
    type Value = Vec<Logged>;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let mut random = SplitMix64(any::<u64>().new_tree(runner)?.current());
        let len = random.next() % (self.max_len as u64 + 1);
        let steps = (0..len).map(|_| Step::from_random(&mut random)).collect();
        Ok(ShrinkingLog::new(self.cast.clone(), steps))
    }
}

/// What somebody is about to do. In a conversation that does not exist, mostly to create it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Send,
    Read,
    Recall,
    Edit,
    Hide,
    MarkUnread,
    Add,
    Remove,
    ChangeConversation,
    ChangeSession,
    Clear,
    RemoveSession,
    Ack,
    CreateAgain,
    /// Append an earlier event's id again.
    Repeat,
    /// Break a rule.
    Break,
}

/// How often each is done.
const WHATS: [(u32, What); 16] = [
    (30, What::Send),
    (10, What::Read),
    (6, What::Recall),
    (6, What::Edit),
    (5, What::Hide),
    (7, What::MarkUnread),
    (8, What::Add),
    (7, What::Remove),
    (3, What::ChangeConversation),
    (4, What::ChangeSession),
    (3, What::Clear),
    (4, What::RemoveSession),
    (5, What::Ack),
    (2, What::CreateAgain),
    (12, What::Repeat),
    (9, What::Break),
];

/// What the broker's clock does before the event is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// A few milliseconds pass.
    Ticks,
    /// It shows the same time.
    Stands,
    /// It is set back, so that log time stands for a while.
    GoesBack,
    /// About the dedupe window passes.
    Jumps,
    /// More than a week passes, the period of an inbox.
    Leaps,
}

/// How often each happens.
const PACES: [(u32, Pace); 5] = [
    (70, Pace::Ticks),
    (18, Pace::Stands),
    (6, Pace::GoesBack),
    (5, Pace::Jumps),
    (1, Pace::Leaps),
];

/// How many dice a step has: as many as the most particular of them reads.
const DICE: usize = 16;

/// One step, before it is read against what the log has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    what: What,
    pace: Pace,
    dice: [u8; DICE],
}

impl Step {
    fn from_random(random: &mut SplitMix64) -> Self {
        Self {
            what: random.pick(&WHATS),
            pace: random.pick(&PACES),
            dice: std::array::from_fn(|_| random.next().to_le_bytes()[0]),
        }
    }
}

/// Steele, Lea and Flood's generator: any seed is good, and a seed's numbers are the same for ever.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn pick<T: Copy>(&mut self, choices: &[(u32, T)]) -> T {
        let weights = choices.iter().map(|(weight, _)| u64::from(*weight));
        let mut left = self.next() % weights.sum::<u64>();
        for (weight, choice) in choices {
            match left.checked_sub(u64::from(*weight)) {
                Some(rest) => left = rest,
                None => return *choice,
            }
        }
        unreachable!("what is left is less than the weights together")
    }
}
