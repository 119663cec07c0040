//! Names of people, conversations and events, checked once where they enter.
//!
//! An id is text that a product chose, so it is bounded and free of control characters: it becomes part of
//! a Kafka key, a CQL key and a URL. Ids are shared (`Arc`), since one user's id stands in many rows of a batch.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

/// The longest id of a user, a conversation or a device, in bytes.
pub const MAX_ID_BYTES: usize = 128;

/// Why a text cannot be an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text has no characters.
    #[error("{kind} must not be empty")]
    Empty {
        /// What the id would have named.
        kind: &'static str,
    },
    /// The text is longer than [`MAX_ID_BYTES`].
    #[error("{kind} has {bytes} bytes, more than {MAX_ID_BYTES}")]
    TooLong {
        /// What the id would have named.
        kind: &'static str,
        /// Its length in bytes.
        bytes: usize,
    },
    /// The text holds a control character.
    #[error("{kind} holds a control character")]
    ControlCharacter {
        /// What the id would have named.
        kind: &'static str,
    },
}

fn check(kind: &'static str, text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { kind });
    }
    if text.len() > MAX_ID_BYTES {
        return Err(IdError::TooLong {
            kind,
            bytes: text.len(),
        });
    }
    if text.chars().any(char::is_control) {
        return Err(IdError::ControlCharacter { kind });
    }
    Ok(())
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes a text as an id.
            ///
            /// # Errors
            /// [`IdError`] where it is empty, longer than [`MAX_ID_BYTES`] or holds a control character.
            pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
                check($kind, text.as_ref())?;
                Ok(Self(Arc::from(text.as_ref())))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// A direct chat or a group: the consistency boundary, and the key of its records in the log.
    ConversationId,
    "a conversation id"
);
text_id!(
    /// Somebody who sends, reads and belongs to conversations.
    UserId,
    "a user id"
);
text_id!(
    /// One of a user's devices: what it has stored is acknowledged apart from the others.
    DeviceId,
    "a device id"
);

/// The producer's idempotency key: the same id within a conversation's dedupe window is the same event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(Uuid);

impl EventId {
    /// Takes any UUID as an event id.
    pub const fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The id of the `index`-th event that one call was split into: the same call gives the same ids again.
    /// Index 0 is the call's own id.
    pub fn part(self, index: u32) -> Self {
        match index {
            0 => self,
            _ => Self(Uuid::new_v5(&self.0, &index.to_be_bytes())),
        }
    }

    /// The UUID.
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
