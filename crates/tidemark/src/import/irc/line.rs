//! One line of an IRC log, taken apart.

use std::fmt;

use tidemark_event::MAX_BODY_BYTES;

/// The longest nick that is read as one. Networks allow 9 to 30 characters; a longer one is a garbled line.
const MAX_NICK_BYTES: usize = 64;

/// Who did what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) nick: String,
    pub(super) act: Act,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Says {
        /// Of the day, from 0.
        minute: u16,
        text: String,
        /// `* nick text`.
        action: bool,
    },
    Joins,
    Leaves,
    /// The other nick.
    Becomes(String),
}

/// Why a line could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    UnknownForm,
    NoTime,
    NoNick,
    OtherChannel,
    TooLong,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownForm => "has none of the known forms",
            Self::NoTime => "has no time of day",
            Self::NoNick => "has no nick",
            Self::OtherChannel => "is about another channel",
            Self::TooLong => "is too long for a message",
        })
    }
}

impl Line {
    /// Reads a line without its end.
    pub(super) fn read(text: &str, channel: &str) -> Result<Self, Reason> {
        if let Some(movement) = text.strip_prefix("=== ") {
            return Self::read_movement(movement, channel);
        }
        let (time, rest) = text
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("] "))
            .ok_or(Reason::UnknownForm)?;
        let minute = read_minute(time).ok_or(Reason::NoTime)?;
        let (nick, text, action) = if let Some(rest) = rest.strip_prefix('<') {
            let (nick, text) = rest.split_once('>').ok_or(Reason::NoNick)?;
            (nick, text.strip_prefix(' ').unwrap_or(text), false)
        } else if let Some(rest) = rest.strip_prefix("* ") {
            let (nick, text) = rest.split_once(' ').unwrap_or((rest, ""));
            (nick, text, true)
        } else {
            return Err(Reason::UnknownForm);
        };
        if text.len() > MAX_BODY_BYTES {
            return Err(Reason::TooLong);
        }
        let text = text.to_owned();
        Ok(Self {
            nick: read_nick(nick)?,
            act: Act::Says {
                minute,
                text,
                action,
            },
        })
    }

    /// A line that begins with `=== `, without that.
    fn read_movement(movement: &str, channel: &str) -> Result<Self, Reason> {
        let (nick, rest) = movement.split_once(' ').ok_or(Reason::UnknownForm)?;
        let nick = read_nick(nick)?;
        if let Some(other) = rest.strip_prefix("is now known as ") {
            let act = Act::Becomes(read_nick(other.trim_end())?);
            return Ok(Self { nick, act });
        }
        let (_mask, rest) = rest
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .ok_or(Reason::UnknownForm)?;
        let rest = rest.trim();
        let (act, rest) = if let Some(rest) = rest.strip_prefix("has joined #") {
            (Act::Joins, rest)
        } else if let Some(rest) = rest.strip_prefix("has left #") {
            (Act::Leaves, rest)
        } else {
            return Err(Reason::UnknownForm);
        };
        // A reason may follow the channel of a leave. Channels do not tell large letters from small ones.
        let name = rest.split_whitespace().next().unwrap_or_default();
        if !name.eq_ignore_ascii_case(channel) {
            return Err(Reason::OtherChannel);
        }
        Ok(Self { nick, act })
    }

    /// When, where the line says so.
    pub(super) fn minute(&self) -> Option<u16> {
        match self.act {
            Act::Says { minute, .. } => Some(minute),
            Act::Joins | Act::Leaves | Act::Becomes(_) => None,
        }
    }
}

/// `12:34` as minutes of the day.
fn read_minute(time: &str) -> Option<u16> {
    let (hour, minute) = time.split_once(':')?;
    Some(two_digits(hour, 24)? * 60 + two_digits(minute, 60)?)
}

fn two_digits(text: &str, limit: u16) -> Option<u16> {
    let [tens, ones] = text.as_bytes() else {
        return None;
    };
    if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
        return None;
    }
    let number = u16::from(tens - b'0') * 10 + u16::from(ones - b'0');
    (number < limit).then_some(number)
}

/// A nick out of which a user's id can be made.
fn read_nick(text: &str) -> Result<String, Reason> {
    let is_foreign = |character: char| character.is_control() || character.is_whitespace();
    if text.is_empty() || text.len() > MAX_NICK_BYTES || text.contains(is_foreign) {
        return Err(Reason::NoNick);
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, nick: &str, act: Act) {
        let nick = nick.to_owned();
        assert_eq!(Line::read(text, "tea"), Ok(Line { nick, act }));
    }

    #[track_caller]
    fn does_not_read(text: &str, reason: Reason) {
        assert_eq!(Line::read(text, "tea"), Err(reason), "{text}");
    }

    fn says(minute: u16, text: &str) -> Act {
        let text = text.to_owned();
        Act::Says {
            minute,
            text,
            action: false,
        }
    }

    #[test]
    fn what_is_said_keeps_every_character() {
        reads("[00:00] <anna> hi", "anna", says(0, "hi"));
        reads(
            "[23:59] <anna>  two: > <b> ",
            "anna",
            says(1439, " two: > <b> "),
        );
        reads("[09:05] <[bo]^|_>", "[bo]^|_", says(545, ""));
        reads(
            "[09:05] <bo> \u{8}\u{fffd}",
            "bo",
            says(545, "\u{8}\u{fffd}"),
        );
    }

    #[test]
    fn what_is_done_is_an_action() {
        let act = |text: &str| Act::Says {
            minute: 600,
            text: text.to_owned(),
            action: true,
        };
        reads("[10:00] * bo makes tea", "bo", act("makes tea"));
        reads("[10:00] * bo", "bo", act(""));
    }

    #[test]
    fn people_come_and_go_and_are_renamed() {
        let mask = "[~user@host.example]  has";
        reads(&format!("=== bo {mask} joined #tea"), "bo", Act::Joins);
        reads(&format!("=== bo {mask} left #TEA"), "bo", Act::Leaves);
        reads(
            &format!("=== bo {mask} left #tea (so tired)"),
            "bo",
            Act::Leaves,
        );
        reads(
            "=== bo is now known as bo_",
            "bo",
            Act::Becomes("bo_".to_owned()),
        );
    }

    #[test]
    fn a_time_is_two_and_two_digits_within_a_day() {
        for time in [
            "", "1:00", "24:00", "10:60", "+1:00", "10:0", "10:00:00", "١٠:00", "1000",
        ] {
            does_not_read(&format!("[{time}] <bo> hi"), Reason::NoTime);
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_says_why() {
        does_not_read("hello", Reason::UnknownForm);
        does_not_read("[10:00]", Reason::UnknownForm);
        does_not_read("[10:00] -bo- psst", Reason::UnknownForm);
        does_not_read("[10:00] <bo hi", Reason::NoNick);
        does_not_read("[10:00] <> hi", Reason::NoNick);
        does_not_read("[10:00] <b o> hi", Reason::NoNick);
        does_not_read("=== bo", Reason::UnknownForm);
        does_not_read("=== bo has quit", Reason::UnknownForm);
        does_not_read("=== bo [x] has quit", Reason::UnknownForm);
        does_not_read("=== bo [x] has joined #coffee", Reason::OtherChannel);
        does_not_read("=== bo [x] has joined #", Reason::OtherChannel);
        does_not_read("=== bo is now known as ", Reason::NoNick);
        let long_nick = "b".repeat(MAX_NICK_BYTES + 1);
        does_not_read(&format!("[10:00] <{long_nick}> hi"), Reason::NoNick);
        let long_text = "b".repeat(MAX_BODY_BYTES + 1);
        does_not_read(&format!("[10:00] <bo> {long_text}"), Reason::TooLong);
    }
}
