//! How large an event may be, judged where it is made.
//!
//! A reader of the log does not judge: what stands there is a fact, also where a trusted producer wrote it
//! before a limit was lowered. A reader's only bound is [`MAX_VALUE_BYTES`](crate::MAX_VALUE_BYTES).

use crate::{Event, MAX_ID_BYTES, MAX_MEMBERS_PER_EVENT, Payload, Seq};

/// The largest body of a message: it is copied into the inbox of each member of a small conversation.
pub const MAX_BODY_BYTES: usize = 64 << 10;

/// The largest title of a conversation: it stands in every session row.
pub const MAX_TITLE_BYTES: usize = 1 << 10;

/// The largest draft: it stands in a session row, and a page of sessions has up to 200 of them.
pub const MAX_DRAFT_BYTES: usize = 8 << 10;

/// The largest content type.
pub const MAX_CONTENT_TYPE_BYTES: usize = 128;

/// The most users that one message addresses by name.
pub const MAX_MENTIONS: usize = 1_000;

/// The largest seq that Avro's long and CQL's bigint hold.
pub const MAX_SEQ: Seq = Seq::new(i64::MAX as u64);

/// Which limit an event exceeds. Fields are named as in the event's payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// A text is too long.
    #[error("{field} has {bytes} bytes, more than {limit}")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Its length in bytes of UTF-8.
        bytes: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// A list is too long.
    #[error("{field} has {count} entries, more than {limit}")]
    TooMany {
        /// The field.
        field: &'static str,
        /// Its number of entries.
        count: usize,
        /// The most allowed.
        limit: usize,
    },
    /// A text that must say something is empty.
    #[error("{field} must not be empty")]
    Empty {
        /// The field.
        field: &'static str,
    },
    /// A seq is beyond [`MAX_SEQ`].
    #[error("{field} is {seq}, beyond the largest, {MAX_SEQ}")]
    SeqTooLarge {
        /// The field.
        field: &'static str,
        /// Its seq.
        seq: Seq,
    },
}

/// Checks an event that is about to be written.
///
/// # Errors
/// [`LimitError`] names the first field that exceeds its limit.
pub fn check_limits(event: &Event) -> Result<(), LimitError> {
    if let Some(body_key) = &event.body_key {
        bytes("body_key", body_key, MAX_ID_BYTES)?;
        not_empty("body_key", body_key)?;
    }
    check_seq(&event.payload)?;
    match &event.payload {
        Payload::ConversationCreated(created) => {
            entries("members", created.members.len(), MAX_MEMBERS_PER_EVENT)?;
            bytes("title", &created.title, MAX_TITLE_BYTES)
        }
        Payload::ConversationChanged(changed) => match &changed.title {
            Some(title) => bytes("title", title, MAX_TITLE_BYTES),
            None => Ok(()),
        },
        Payload::MembersAdded(added) => {
            entries("members", added.members.len(), MAX_MEMBERS_PER_EVENT)
        }
        Payload::MembersRemoved(removed) => {
            entries("members", removed.members.len(), MAX_MEMBERS_PER_EVENT)
        }
        Payload::MessageSent(sent) => {
            bytes("body", &sent.body, MAX_BODY_BYTES)?;
            bytes("content_type", &sent.content_type, MAX_CONTENT_TYPE_BYTES)?;
            not_empty("content_type", &sent.content_type)?;
            entries("mentions", sent.mentions.len(), MAX_MENTIONS)
        }
        Payload::MessageEdited(edited) => {
            bytes("body", &edited.body, MAX_BODY_BYTES)?;
            entries(
                "mentions",
                edited.mentions.as_ref().map_or(0, Vec::len),
                MAX_MENTIONS,
            )
        }
        Payload::SessionChanged(changed) => match &changed.draft {
            Some(draft) => bytes("draft", draft, MAX_DRAFT_BYTES),
            None => Ok(()),
        },
        Payload::MessageRecalled(_)
        | Payload::MessageHidden(_)
        | Payload::ReadAdvanced(_)
        | Payload::MarkedUnread(_)
        | Payload::HistoryCleared(_)
        | Payload::SessionRemoved(_)
        | Payload::InboxAcked(_) => Ok(()),
    }
}

/// Checks the one seq that a payload may name. Beyond [`MAX_SEQ`] an event cannot be encoded.
pub(crate) fn check_seq(payload: &Payload) -> Result<(), LimitError> {
    let (field, seq) = match payload {
        Payload::MessageSent(sent) => match sent.reply_to {
            Some(seq) => ("reply_to", seq),
            None => return Ok(()),
        },
        Payload::MessageEdited(edited) => ("seq", edited.seq),
        Payload::MessageRecalled(recalled) => ("seq", recalled.seq),
        Payload::MessageHidden(hidden) => ("seq", hidden.seq),
        Payload::ReadAdvanced(read) => ("seq", read.seq),
        Payload::MarkedUnread(unread) => ("from_seq", unread.from_seq),
        Payload::InboxAcked(acked) => ("seq", acked.seq),
        Payload::ConversationCreated(_)
        | Payload::ConversationChanged(_)
        | Payload::MembersAdded(_)
        | Payload::MembersRemoved(_)
        | Payload::SessionChanged(_)
        | Payload::HistoryCleared(_)
        | Payload::SessionRemoved(_) => return Ok(()),
    };
    if seq > MAX_SEQ {
        return Err(LimitError::SeqTooLarge { field, seq });
    }
    Ok(())
}

fn bytes(field: &'static str, text: &str, limit: usize) -> Result<(), LimitError> {
    let bytes = text.len();
    if bytes > limit {
        return Err(LimitError::TooLong {
            field,
            bytes,
            limit,
        });
    }
    Ok(())
}

fn entries(field: &'static str, count: usize, limit: usize) -> Result<(), LimitError> {
    if count > limit {
        return Err(LimitError::TooMany {
            field,
            count,
            limit,
        });
    }
    Ok(())
}

fn not_empty(field: &'static str, text: &str) -> Result<(), LimitError> {
    if text.is_empty() {
        return Err(LimitError::Empty { field });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ConversationChanged, ConversationCreated, History, Kind, MembersAdded, MembersRemoved,
        MessageEdited, MessageSent, ReadAdvanced, SessionChanged, UserId, sample,
    };

    #[track_caller]
    fn check(payload: Payload, expected: Result<(), LimitError>) {
        assert_eq!(check_limits(&sample::event(payload)), expected);
    }

    fn long(bytes: usize) -> String {
        "x".repeat(bytes)
    }

    fn users(count: usize) -> Vec<UserId> {
        (0..count)
            .map(|number| UserId::new(format!("u{number}")).unwrap())
            .collect()
    }

    fn sent(body: String, mentions: Vec<UserId>) -> MessageSent {
        MessageSent {
            body,
            content_type: "text".to_owned(),
            mentions,
            mention_all: false,
            silent: false,
            reply_to: None,
        }
    }

    #[test]
    fn a_message_is_as_long_as_allowed_and_no_longer() {
        check(
            Payload::MessageSent(sent(long(MAX_BODY_BYTES), users(MAX_MENTIONS))),
            Ok(()),
        );
        let (field, bytes, limit) = ("body", MAX_BODY_BYTES + 1, MAX_BODY_BYTES);
        let body = long(bytes);
        let too_long = Err(LimitError::TooLong {
            field,
            bytes,
            limit,
        });
        check(
            Payload::MessageSent(sent(body.clone(), vec![])),
            too_long.clone(),
        );
        check(
            Payload::MessageEdited(MessageEdited {
                seq: Seq::FIRST,
                body,
                mentions: None,
            }),
            too_long,
        );
    }

    #[test]
    fn a_message_mentions_as_many_as_allowed_and_no_more() {
        let (field, count, limit) = ("mentions", MAX_MENTIONS + 1, MAX_MENTIONS);
        let too_many = Err(LimitError::TooMany {
            field,
            count,
            limit,
        });
        check(
            Payload::MessageSent(sent(long(1), users(count))),
            too_many.clone(),
        );
        let mentions = Some(users(count));
        check(
            Payload::MessageEdited(MessageEdited {
                seq: Seq::FIRST,
                body: long(1),
                mentions,
            }),
            too_many,
        );
    }

    #[test]
    fn a_content_type_is_a_short_word() {
        for (content_type, expected) in [
            (long(MAX_CONTENT_TYPE_BYTES), Ok(())),
            (
                String::new(),
                Err(LimitError::Empty {
                    field: "content_type",
                }),
            ),
            (
                long(MAX_CONTENT_TYPE_BYTES + 1),
                Err(LimitError::TooLong {
                    field: "content_type",
                    bytes: MAX_CONTENT_TYPE_BYTES + 1,
                    limit: MAX_CONTENT_TYPE_BYTES,
                }),
            ),
        ] {
            check(
                Payload::MessageSent(MessageSent {
                    content_type,
                    ..sent(long(1), vec![])
                }),
                expected,
            );
        }
    }

    #[test]
    fn an_event_adds_or_removes_as_many_members_as_allowed_and_no_more() {
        let (field, count, limit) = ("members", MAX_MEMBERS_PER_EVENT + 1, MAX_MEMBERS_PER_EVENT);
        let too_many = Err(LimitError::TooMany {
            field,
            count,
            limit,
        });
        check(
            Payload::MembersAdded(MembersAdded {
                members: users(limit),
            }),
            Ok(()),
        );
        check(
            Payload::MembersAdded(MembersAdded {
                members: users(count),
            }),
            too_many.clone(),
        );
        check(
            Payload::MembersRemoved(MembersRemoved {
                members: users(count),
            }),
            too_many.clone(),
        );
        let created = ConversationCreated {
            kind: Kind::Group,
            members: users(count),
            title: String::new(),
            history: History::All,
        };
        check(Payload::ConversationCreated(created), too_many);
    }

    #[test]
    fn titles_and_drafts_are_bounded() {
        let title = Some(long(MAX_TITLE_BYTES + 1));
        check(
            Payload::ConversationChanged(ConversationChanged {
                title,
                history: None,
            }),
            Err(LimitError::TooLong {
                field: "title",
                bytes: MAX_TITLE_BYTES + 1,
                limit: MAX_TITLE_BYTES,
            }),
        );
        let draft = Some(long(MAX_DRAFT_BYTES + 1));
        check(
            Payload::SessionChanged(SessionChanged {
                pinned: None,
                muted: None,
                draft,
            }),
            Err(LimitError::TooLong {
                field: "draft",
                bytes: MAX_DRAFT_BYTES + 1,
                limit: MAX_DRAFT_BYTES,
            }),
        );
    }

    #[test]
    fn a_seq_fits_a_long() {
        check(Payload::ReadAdvanced(ReadAdvanced { seq: MAX_SEQ }), Ok(()));
        let seq = MAX_SEQ.next();
        check(
            Payload::ReadAdvanced(ReadAdvanced { seq }),
            Err(LimitError::SeqTooLarge { field: "seq", seq }),
        );
        let reply = MessageSent {
            reply_to: Some(seq),
            ..sent(long(1), vec![])
        };
        check(
            Payload::MessageSent(reply),
            Err(LimitError::SeqTooLarge {
                field: "reply_to",
                seq,
            }),
        );
    }
}
