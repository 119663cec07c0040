//! One day of an IRC channel's log, read as events of one conversation.
//!
//! | line | becomes |
//! | --- | --- |
//! | `[12:34] <nick> text` | a message; `nick: …` or `nick, …` mentions whoever is known by that nick so far |
//! | `[12:34] * nick text` | a message of content type `action` |
//! | `=== nick [~user@host]  has joined #channel` | a join; of somebody who is there, nothing |
//! | `=== nick [~user@host]  has left #channel` | a leave; of somebody who is not there, nothing |
//! | `=== nick is now known as other` | nothing: the user stays who they are |
//!
//! The first who appears creates the conversation. Who speaks or is renamed without having joined joins just
//! before: most people were there when the log began. Whose nick another one is renamed to leaves just before.
//! Membership is a service's word in the user's name; what is said is the user's own.
//!
//! Times are minutes without a date. A log ends on its file's date; where its clock goes back, the part before
//! is of the day before.
//!
//! Event ids follow from the conversation, the line's number and what the line became, so that the same file
//! gives the same ids again. Reading is total: a line that cannot be read is counted and named, never an error.
//! No files, no clock and no log are known here.

mod line;
mod nicks;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, ops::AddAssign};

use jiff::civil::Date;
use serde::Serialize;
use tidemark_event::{
    ConversationCreated, ConversationId, Event, EventId, History, Kind, MembersAdded,
    MembersRemoved, MessageSent, Payload, UserId,
};
use uuid::Uuid;

use self::{
    line::{Act, Line},
    nicks::Nicks,
};
pub(crate) use line::Reason;

/// A clock that goes back by less was set right; by more, a new day began.
const NEW_DAY_MINUTES: i64 = 120;

const MINUTES_PER_DAY: i64 = 24 * 60;

/// How many unreadable lines are kept to be shown.
const UNREADABLE_SHOWN: usize = 10;

/// The namespace of the ids. It never changes: an import run again must give the same ones.
const IDS: Uuid = Uuid::from_u128(0x7b0c_51a4_0f7e_4d0e_9a55_1d2c_3f60_8be1);

/// Which channel and day a log is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Channel {
    /// The conversation that its lines belong to.
    pub(crate) conversation: ConversationId,
    /// The channel's name without `#`.
    pub(crate) name: String,
    /// The day on which the log ends, in UTC.
    pub(crate) date: Date,
}

/// A log, read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Transcript {
    /// Its events in order, all of one conversation.
    pub(crate) events: Vec<Event>,
    /// How much there is of what.
    pub(crate) counts: Counts,
    /// The first few lines that could not be read.
    pub(crate) unreadable: Vec<Unreadable>,
}

/// How much there is of what, in one log or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Counts {
    /// Messages, actions among them.
    pub(crate) messages: usize,
    /// Memberships begun, whether or not a line says so.
    pub(crate) joins: usize,
    /// Memberships ended.
    pub(crate) leaves: usize,
    /// Nicks changed.
    pub(crate) renames: usize,
    /// Messages that address somebody by nick.
    pub(crate) mentions: usize,
    /// Lines that could not be read.
    pub(crate) unreadable_lines: usize,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.joins += other.joins;
        self.leaves += other.leaves;
        self.renames += other.renames;
        self.mentions += other.mentions;
        self.unreadable_lines += other.unreadable_lines;
    }
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// Its number in the file, from 1.
    pub(crate) line: usize,
    pub(crate) reason: Reason,
    /// How it begins, made printable.
    pub(crate) beginning: String,
}

/// Reads a log.
pub(crate) fn read(log: &[u8], channel: &Channel) -> Transcript {
    let mut lines = Vec::new();
    let mut unreadable = Vec::new();
    let mut unreadable_lines = 0;
    for (index, bytes) in log.split(|byte| *byte == b'\n').enumerate() {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_start_matches('\u{feff}').trim_end_matches('\r');
        if text.trim().is_empty() {
            continue;
        }
        let number = index + 1;
        match Line::read(text, &channel.name) {
            Ok(line) => lines.push((number, line)),
            Err(reason) => {
                unreadable_lines += 1;
                if unreadable.len() < UNREADABLE_SHOWN {
                    unreadable.push(Unreadable {
                        line: number,
                        reason,
                        beginning: beginning(text),
                    });
                }
            }
        }
    }
    let clock = Clock::before(&lines, channel.date);
    let mut telling = Telling::new(channel, clock);
    for (number, line) in lines {
        telling.tell(number, line);
    }
    Transcript {
        events: telling.events,
        counts: Counts {
            unreadable_lines,
            ..telling.counts
        },
        unreadable,
    }
}

fn beginning(text: &str) -> String {
    const CHARACTERS: usize = 60;
    text.chars()
        .take(CHARACTERS)
        .flat_map(char::escape_debug)
        .collect()
}

/// Gives each line its time; one that has none is of the minute of the line before.
struct Clock {
    /// Minutes from 1970 to the midnight before the next line.
    midnight: i64,
    minute: u16,
}

impl Clock {
    /// The clock as it stands before the first line, so that it ends on `date`.
    fn before(lines: &[(usize, Line)], date: Date) -> Self {
        let mut minutes = lines.iter().filter_map(|(_, line)| line.minute());
        let first = minutes.next().unwrap_or_default();
        let mut minute = first;
        let mut new_days = 0;
        for next in minutes {
            new_days += i64::from(is_new_day(minute, next));
            minute = next;
        }
        let date = i64::from((date - Date::constant(1970, 1, 1)).get_days());
        Self {
            midnight: (date - new_days) * MINUTES_PER_DAY,
            minute: first,
        }
    }

    fn advance(&mut self, minute: u16) {
        if is_new_day(self.minute, minute) {
            self.midnight += MINUTES_PER_DAY;
        }
        self.minute = minute;
    }

    /// Milliseconds since 1970 UTC.
    fn now(&self) -> i64 {
        (self.midnight + i64::from(self.minute)) * 60_000
    }
}

fn is_new_day(before: u16, after: u16) -> bool {
    i64::from(before) - i64::from(after) >= NEW_DAY_MINUTES
}

/// Turns lines into events, one after the other.
struct Telling<'a> {
    channel: &'a Channel,
    clock: Clock,
    nicks: Nicks,
    members: HashSet<UserId>,
    events: Vec<Event>,
    counts: Counts,
}

impl<'a> Telling<'a> {
    fn new(channel: &'a Channel, clock: Clock) -> Self {
        Self {
            channel,
            clock,
            nicks: Nicks::default(),
            members: HashSet::new(),
            events: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn tell(&mut self, number: usize, Line { nick, act }: Line) {
        let Ok(user) = self.nicks.holder(&nick) else {
            unreachable!("line {number}: {nick:?} was read as a nick, and is no user's id");
        };
        match act {
            Act::Says {
                minute,
                text,
                action,
            } => {
                self.clock.advance(minute);
                self.join(number, &user);
                self.say(number, &user, text, action);
            }
            Act::Joins => self.join(number, &user),
            Act::Leaves => self.leave(number, &user),
            Act::Becomes(other) => {
                self.join(number, &user);
                self.counts.renames += 1;
                if let Some(gone) = self
                    .nicks
                    .rename(&nick, &other)
                    .filter(|gone| *gone != user)
                {
                    self.leave(number, &gone);
                }
            }
        }
    }

    fn join(&mut self, number: usize, user: &UserId) {
        if !self.members.insert(user.clone()) {
            return;
        }
        self.counts.joins += 1;
        let members = vec![user.clone()];
        if self.events.is_empty() {
            let created = ConversationCreated {
                kind: Kind::Group,
                members,
                title: format!("#{} {}", self.channel.name, self.channel.date),
                history: History::FromJoin,
            };
            self.push(
                number,
                "create",
                user,
                true,
                Payload::ConversationCreated(created),
            );
        } else {
            let added = MembersAdded { members };
            self.push(number, "join", user, true, Payload::MembersAdded(added));
        }
    }

    fn leave(&mut self, number: usize, user: &UserId) {
        if !self.members.remove(user) {
            return;
        }
        self.counts.leaves += 1;
        let members = vec![user.clone()];
        let removed = MembersRemoved { members };
        self.push(
            number,
            "leave",
            user,
            true,
            Payload::MembersRemoved(removed),
        );
    }

    fn say(&mut self, number: usize, user: &UserId, text: String, action: bool) {
        let mentioned = addressed(&text).and_then(|nick| self.nicks.known(nick));
        let mentions = Vec::from_iter(mentioned.cloned());
        self.counts.messages += 1;
        self.counts.mentions += mentions.len();
        let content_type = if action { "action" } else { "text" };
        let sent = MessageSent {
            body: text,
            content_type: content_type.to_owned(),
            mentions,
            mention_all: false,
            silent: false,
            reply_to: None,
        };
        self.push(number, "message", user, false, Payload::MessageSent(sent));
    }

    /// A line gives at most one event of a kind, so that its number and the kind tell its events apart.
    fn push(
        &mut self,
        number: usize,
        kind: &'static str,
        actor: &UserId,
        by_service: bool,
        payload: Payload,
    ) {
        let conversation = self.channel.conversation.clone();
        let name = format!("{conversation}/{number}/{kind}");
        self.events.push(Event {
            id: EventId::new(Uuid::new_v5(&IDS, name.as_bytes())),
            conversation,
            actor: actor.clone(),
            by_service,
            occurred_at: Some(self.clock.now()),
            body_key: None,
            payload,
        });
    }
}

/// The first word of a text, where a `:` or `,` follows it at once: whom it addresses, if that is a nick.
fn addressed(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let (word, _) = text.split_once([':', ','])?;
    (!word.is_empty() && !word.contains(char::is_whitespace)).then_some(word)
}
