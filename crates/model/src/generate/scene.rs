//! Reads steps against what the log has come to, and writes the log.
//!
//! It believes, rather than knows, who is a member and what the last seq is: it judges nothing, so a belief may be
//! wrong after a repeated id, and then an event is refused that was meant to pass. That is welcome.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_event::{
    ConversationCreated, ConversationId, Event, EventId, Kind, LogTime, Offset, Payload, Seq,
    UserId,
};
use uuid::Uuid;

use super::{Cast, DICE, Pace, Step, What};
use crate::{
    Logged,
    story::{FIRST_MILLIS, user},
};

const WEEK_MILLIS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// The log that these steps make.
pub(super) fn play(cast: &Cast, seed: u64, steps: &[Step]) -> Vec<Logged> {
    let mut scene = Scene {
        cast,
        seed,
        everybody: cast.users(),
        places: BTreeMap::new(),
        clock: FIRST_MILLIS,
        log: Vec::with_capacity(steps.len()),
    };
    for step in steps {
        scene.append(step);
    }
    scene.log
}

pub(super) struct Scene<'a> {
    pub(super) cast: &'a Cast,
    seed: u64,
    pub(super) everybody: Vec<UserId>,
    /// What is believed of each conversation that exists.
    pub(super) places: BTreeMap<ConversationId, Place>,
    /// The broker's clock, which may go back.
    pub(super) clock: i64,
    pub(super) log: Vec<Logged>,
}

pub(super) struct Place {
    pub(super) created: ConversationCreated,
    pub(super) members: BTreeSet<UserId>,
    pub(super) last: u64,
}

/// The dice of one step, read one after the other; when all are read, zeros.
pub(super) struct Dice(std::array::IntoIter<u8, DICE>);

impl Dice {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::from(self.0.next().unwrap_or(0)) % bound.max(1)
    }

    pub(super) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    /// An element, the first where the die shows 0.
    pub(super) fn one_of<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len()))
    }

    /// Any of the elements, none where the die shows 0.
    pub(super) fn some_of<T: Clone>(&mut self, choices: &[T]) -> Vec<T> {
        let bits = self.below(256);
        let picked = |index: usize| bits >> (index % 8) & 1 == 1;
        let chosen = choices
            .iter()
            .enumerate()
            .filter(|(index, _)| picked(*index));
        chosen.map(|(_, choice)| choice.clone()).collect()
    }
}

/// An event before it has an id.
pub(super) struct Act {
    pub(super) conversation: ConversationId,
    pub(super) actor: UserId,
    pub(super) by_service: bool,
    pub(super) occurred_at: Option<i64>,
    pub(super) payload: Payload,
}

// The log: ids, offsets and time.
impl Scene<'_> {
    fn append(&mut self, step: &Step) {
        let mut dice = Dice(step.dice.into_iter());
        let conversation = match dice.one_of(&self.cast.conversations()) {
            Some(conversation) => conversation.clone(),
            None => return,
        };
        self.pass_time(step.pace, &mut dice);
        let event = match step.what {
            What::Repeat => self.repetition(&conversation, &mut dice),
            what => {
                let breaks = what == What::Break && self.places.contains_key(&conversation);
                let act = self.act(what, &conversation, &mut dice);
                if !breaks {
                    self.believe(&act);
                }
                act.with_id(self.new_id())
            }
        };
        let hole = if dice.one_in(12) {
            1 + dice.below(3)
        } else {
            0
        };
        let (offset, log_time) = match self.log.last() {
            None => (0, LogTime::START),
            Some(newest) => (newest.offset.get() + 1, newest.log_time),
        };
        self.log.push(Logged {
            offset: Offset::new(offset + hole as i64),
            log_time: log_time.advance(self.clock),
            event,
        });
    }

    fn pass_time(&mut self, pace: Pace, dice: &mut Dice) {
        let die = dice.below(256) as i64;
        self.clock += match pace {
            Pace::Ticks => 1 + die % 50,
            Pace::Stands => 0,
            Pace::GoesBack => -die,
            Pace::Jumps => self.cast.settings.dedupe_window_millis - 1 + die % 3,
            Pace::Leaps => WEEK_MILLIS + die * 60_000,
        };
    }

    fn new_id(&self) -> EventId {
        EventId::new(Uuid::from_u64_pair(self.seed, 1 + self.log.len() as u64))
    }

    /// An earlier event's id again: with the same content or other, sometimes of another conversation, and
    /// sometimes just when the dedupe window ends.
    fn repetition(&mut self, conversation: &ConversationId, dice: &mut Dice) -> Event {
        let elsewhere = dice.one_in(8);
        let here = |logged: &&Logged| (logged.event.conversation == *conversation) != elsewhere;
        let earlier = self.log.iter().filter(here).rev().collect::<Vec<_>>();
        let reach = if dice.one_in(2) {
            earlier.len()
        } else {
            earlier.len().min(4)
        };
        let repeated = dice
            .one_of(&earlier[..reach])
            .map(|repeated| (*repeated).clone());
        let Some(repeated) = repeated else {
            let act = self.act(What::Send, conversation, dice);
            self.believe(&act);
            return act.with_id(self.new_id());
        };

        let window_end = repeated.log_time.millis() + self.cast.settings.dedupe_window_millis;
        self.clock = match dice.below(5) {
            0 | 1 => self.clock,
            2 => self.clock.max(window_end - 1),
            3 => self.clock.max(window_end),
            _ => self.clock.max(window_end + 1),
        };

        let same_content = !elsewhere && !dice.one_in(3);
        if same_content {
            return repeated.event;
        }
        let act = self.act(What::Send, conversation, dice);
        // Where nothing was accepted yet, and where the id is another conversation's, it is no duplicate.
        if elsewhere || !self.places.contains_key(conversation) {
            self.believe(&act);
        }
        act.with_id(repeated.event.id)
    }
}

impl Act {
    fn with_id(self, id: EventId) -> Event {
        Event {
            id,
            conversation: self.conversation,
            actor: self.actor,
            by_service: self.by_service,
            occurred_at: self.occurred_at,
            body_key: None,
            payload: self.payload,
        }
    }
}

// What is believed.
impl Scene<'_> {
    fn believe(&mut self, act: &Act) {
        let Some(place) = self.places.get_mut(&act.conversation) else {
            if let Payload::ConversationCreated(created) = &act.payload {
                let members = created.members.iter().cloned().collect();
                let place = Place {
                    created: created.clone(),
                    members,
                    last: 0,
                };
                self.places.insert(act.conversation.clone(), place);
            }
            return;
        };
        if !act.by_service && !place.members.contains(&act.actor) {
            return;
        }
        let is_group = place.created.kind == Kind::Group;
        match &act.payload {
            Payload::MembersAdded(added) if is_group => {
                place.members.extend(added.members.iter().cloned());
            }
            Payload::MembersRemoved(removed) if is_group => {
                place
                    .members
                    .retain(|member| !removed.members.contains(member));
            }
            Payload::MessageSent(_) => place.last += 1,
            _ => {}
        }
    }

    pub(super) fn members(&self, conversation: &ConversationId) -> Vec<UserId> {
        self.places
            .get(conversation)
            .map_or_else(Vec::new, |place| place.members.iter().cloned().collect())
    }

    pub(super) fn last(&self, conversation: &ConversationId) -> u64 {
        self.places.get(conversation).map_or(0, |place| place.last)
    }

    /// A member; now and then anybody.
    pub(super) fn somebody(&self, conversation: &ConversationId, dice: &mut Dice) -> UserId {
        let members = self.members(conversation);
        let choices = if members.is_empty() || dice.one_in(16) {
            &self.everybody
        } else {
            &members
        };
        dice.one_of(choices).cloned().unwrap_or_else(desk)
    }

    /// A seq that exists, rather near the last. 1 where there is none.
    pub(super) fn some_seq(&self, conversation: &ConversationId, dice: &mut Dice) -> Seq {
        let last = self.last(conversation) as usize;
        let reach = if dice.one_in(3) { last } else { last.min(4) };
        Seq::new((last - dice.below(reach)).max(1) as u64)
    }

    /// Mostly a seq that exists, else 0 or beyond the last.
    pub(super) fn any_seq(&self, conversation: &ConversationId, dice: &mut Dice) -> Seq {
        let last = self.last(conversation);
        match dice.below(10) {
            8 => Seq::ZERO,
            9 => Seq::new(last + 1 + dice.below(3) as u64),
            _ => self.some_seq(conversation, dice),
        }
    }
}

/// A service's own name: a member nowhere.
pub(super) fn desk() -> UserId {
    user("desk")
}

/// Somebody who is a member nowhere.
pub(super) fn stranger() -> UserId {
    user("stranger")
}
