//! Cursors and tokens: where a list goes on, as text that clients hand back unread.
//!
//! A cursor is the postcard form of a value, behind a checksum and a byte that says what it is of, as base64url. The
//! checksum is salted with what the cursor is for: the list, the log and the caller. So one that was cut off, made up
//! or handed to another list, log or user is told apart and refused, and never read as something else. It is no
//! secret and proves nothing: whoever forges one sees no more than they may see anyway.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use tidemark_event::UserId;
use xxhash_rust::xxh3::Xxh3;

use crate::problem::{Kind, Problem};

/// What a cursor goes on in. The number stands in the cursor; another form of its value takes another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorOf {
    /// A list of sessions.
    Sessions = 1,
    /// A list of mentions.
    Mentions = 2,
    /// A pull of an inbox.
    Inbox = 3,
    /// A conversation's history.
    History = 4,
    /// A conversation's members.
    Members = 5,
    /// A sync token.
    Sync = 6,
}

/// Makes and reads the cursors of one list for one caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursors<'a> {
    /// What the list is of.
    pub(crate) of: CursorOf,
    /// Which log the views are folded from.
    pub(crate) log: &'a str,
    /// Whose list it is.
    pub(crate) user: &'a UserId,
    /// Which list, where there are several of the kind: a conversation, a filter, a device.
    pub(crate) list: &'a str,
}

/// A text that is no cursor of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoCursor;

impl From<NoCursor> for Problem {
    fn from(_: NoCursor) -> Self {
        Self::new(
            Kind::InvalidCursor,
            "use a next_cursor of the same list, exactly as it was returned, or none",
        )
        .about("cursor")
    }
}

const CHECKSUM_BYTES: usize = 8;

impl Cursors<'_> {
    /// The text of a cursor.
    pub(crate) fn write(&self, value: &impl Serialize) -> String {
        // Only a type that postcard has no form for fails, and cursors have none such: a test writes each.
        let value = postcard::to_stdvec(value).unwrap_or_default();
        let mut bytes = vec![self.of as u8];
        bytes.extend_from_slice(&self.checksum(&value).to_le_bytes());
        bytes.extend_from_slice(&value);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a cursor's text.
    pub(crate) fn read<T: DeserializeOwned>(&self, text: &str) -> Result<T, NoCursor> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| NoCursor)?;
        let (of, rest) = bytes.split_first().ok_or(NoCursor)?;
        let (checksum, value) = rest.split_first_chunk::<CHECKSUM_BYTES>().ok_or(NoCursor)?;
        if *of != self.of as u8 || u64::from_le_bytes(*checksum) != self.checksum(value) {
            return Err(NoCursor);
        }
        match postcard::take_from_bytes(value) {
            Ok((value, [])) => Ok(value),
            Ok(_) | Err(_) => Err(NoCursor),
        }
    }

    fn checksum(&self, value: &[u8]) -> u64 {
        let mut hasher = Xxh3::new();
        for part in [self.log, self.user.as_str(), self.list] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.update(&[self.of as u8]);
        hasher.update(value);
        hasher.digest()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn user(name: &str) -> UserId {
        UserId::new(name).unwrap()
    }

    fn cursors<'a>(user: &'a UserId, list: &'a str) -> Cursors<'a> {
        let (of, log) = (CursorOf::Sessions, "log");
        Cursors {
            of,
            log,
            user,
            list,
        }
    }

    #[test]
    fn a_cursor_is_read_by_the_list_that_wrote_it_alone() {
        let (anna, bo) = (user("anna"), user("bo"));
        let mine = cursors(&anna, "unread");
        let text = mine.write(&(true, 7_u64, "g1"));
        let read = |by: Cursors<'_>| by.read::<(bool, u64, String)>(&text);
        assert_eq!(read(mine), Ok((true, 7, "g1".to_owned())));
        for other in [
            cursors(&bo, "unread"),
            cursors(&anna, ""),
            Cursors {
                log: "other",
                ..mine
            },
            Cursors {
                of: CursorOf::Mentions,
                ..mine
            },
        ] {
            assert_eq!(read(other), Err(NoCursor), "{other:?}");
        }
        assert_eq!(mine.read::<(bool, u64)>(&text), Err(NoCursor));
    }

    proptest! {
        #[test]
        fn whatever_is_garbled_is_refused(place in 0_usize..22, letter in "[A-Za-z0-9_-]") {
            let anna = user("anna");
            let mine = cursors(&anna, "");
            let text = mine.write(&(7_u64, "g1"));
            let mut garbled = text.clone();
            let place = place % text.len();
            garbled.replace_range(place..=place, &letter);
            prop_assume!(garbled != text);
            prop_assert_eq!(mine.read::<(u64, String)>(&garbled), Err(NoCursor));
        }

        #[test]
        fn any_text_is_a_cursor_or_none(text in "\\PC*") {
            let anna = user("anna");
            prop_assert_eq!(cursors(&anna, "").read::<(u64, String)>(&text), Err(NoCursor));
        }
    }
}
