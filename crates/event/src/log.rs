//! Places and times in the log, as types that cannot be mixed up.
//!
//! Raw numbers appear only where Kafka or CQL is spoken to. Every `± 1` on an offset stands here, once.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// One of the log topic's partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partition(i32);

impl Partition {
    /// Takes Kafka's partition number.
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// Kafka's number for it.
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The offset of a record that exists. A row keeps the newest one folded into it: its *applied* offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(i64);

impl Offset {
    /// Takes Kafka's offset of a record.
    pub const fn new(offset: i64) -> Self {
        Self(offset)
    }

    /// Kafka's number for it.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The offset to read next. A checkpoint keeps it, a resume seeks to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NextOffset(i64);

impl NextOffset {
    /// Where a log begins that lost nothing.
    pub const START: Self = Self(0);

    /// Takes Kafka's number of the record to read next.
    pub const fn new(offset: i64) -> Self {
        Self(offset)
    }

    /// What to read once `folded` is folded.
    pub const fn after(folded: Offset) -> Self {
        Self(folded.0 + 1)
    }

    /// Whether `record` is still to be folded.
    pub const fn admits(self, record: Offset) -> bool {
        self.0 <= record.0
    }

    /// Kafka's number for it.
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for NextOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Milliseconds since 1970 UTC: the newest broker append time so far in a partition, so that it never goes back.
///
/// It is the only clock of a fold. [`LogTime::advance`] is the only way to move it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogTime(i64);

impl LogTime {
    /// Before the first record of a partition.
    pub const START: Self = Self(0);

    /// Takes stored milliseconds since 1970 UTC.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970 UTC.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// The log time of a record appended at `append_time` (broker milliseconds) after this one.
    #[must_use]
    pub const fn advance(self, append_time: i64) -> Self {
        if append_time > self.0 {
            Self(append_time)
        } else {
            self
        }
    }
}

/// A hash of a record's key, value and append time: tells a record from another one at its offset,
/// since Kafka says nothing where a topic was deleted and made anew with as many records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of a record. `append_time` is the broker's, in milliseconds.
    pub fn of(key: Option<&[u8]>, value: Option<&[u8]>, append_time: i64) -> Self {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        for part in [key, value] {
            // Length and presence first, so that bytes moved from key to value make another hash.
            hasher.update(&part.map_or(-1, |bytes| bytes.len() as i64).to_le_bytes());
            hasher.update(part.unwrap_or_default());
        }
        hasher.update(&append_time.to_le_bytes());
        Self(hasher.digest())
    }

    /// Takes a stored fingerprint, as CQL keeps it.
    pub const fn from_i64(bits: i64) -> Self {
        Self(bits as u64)
    }

    /// The fingerprint as CQL keeps it: the same 64 bits.
    pub const fn as_i64(self) -> i64 {
        self.0 as i64
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A message's place in its conversation: 1, 2, 3 … without gaps, assigned by the fold.
///
/// 0 is the place before the first message, where a read position starts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(u64);

impl Seq {
    /// Before the first message.
    pub const ZERO: Self = Self(0);
    /// The first message.
    pub const FIRST: Self = Self(1);

    /// Takes a number that a client or the store gave.
    pub const fn new(seq: u64) -> Self {
        Self(seq)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The seq of the message after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The seq before this one; 0 stays 0.
    #[must_use]
    pub const fn previous(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Partition and offset of an event in the log: what a client holds to read its own writes.
///
/// Clients treat its text form as opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The partition of the event's conversation.
    pub partition: Partition,
    /// The event's offset there.
    pub offset: Offset,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.partition, self.offset)
    }
}

/// A text that is no position of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a position: use one exactly as a write returned it")]
pub struct PositionError {
    text: String,
}

impl FromStr for Position {
    type Err = PositionError;

    fn from_str(text: &str) -> Result<Self, PositionError> {
        let parsed = text.split_once('-').and_then(|(partition, offset)| {
            Some((partition.parse::<u16>().ok()?, offset.parse::<u64>().ok()?))
        });
        match parsed.and_then(|(partition, offset)| Some((partition, i64::try_from(offset).ok()?)))
        {
            Some((partition, offset)) => Ok(Self {
                partition: Partition(i32::from(partition)),
                offset: Offset(offset),
            }),
            None => Err(PositionError {
                text: text.chars().take(40).collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_admitted_until_it_is_folded() {
        let folded = Offset::new(7);
        assert!(NextOffset::new(7).admits(folded));
        assert!(!NextOffset::after(folded).admits(folded));
        assert!(NextOffset::after(folded).admits(Offset::new(8)));
    }

    #[test]
    fn log_time_never_goes_back() {
        let late = LogTime::START.advance(1_000);
        assert_eq!(late.advance(400), late);
        assert_eq!(late.advance(1_001).millis(), 1_001);
    }

    #[test]
    fn a_position_reads_back_from_its_text_and_nothing_else_does() {
        let position = Position {
            partition: Partition::new(3),
            offset: Offset::new(1204),
        };
        assert_eq!(position.to_string().parse(), Ok(position));
        for text in [
            "",
            "3",
            "3-",
            "-3-4",
            "3--4",
            "a-1",
            "3-99999999999999999999",
            "99999-1",
        ] {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_fingerprint_tells_key_from_value_and_time() {
        let one = Fingerprint::of(Some(b"ab"), Some(b"c"), 5);
        assert_ne!(one, Fingerprint::of(Some(b"a"), Some(b"bc"), 5));
        assert_ne!(one, Fingerprint::of(Some(b"ab"), Some(b"c"), 6));
        assert_ne!(
            Fingerprint::of(None, Some(b""), 5),
            Fingerprint::of(Some(b""), None, 5)
        );
        assert_eq!(Fingerprint::from_i64(one.as_i64()), one);
    }
}
