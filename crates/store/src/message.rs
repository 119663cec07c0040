//! A message's columns, the same in roaming's messages and in inbox copies.

use scylla::{DeserializeRow, SerializeRow, value::CqlTimestamp};
use tidemark_event::{ConversationId, EventId, LogTime, UserId};
use tidemark_fold::{Message, Stored};
use uuid::Uuid;

use crate::{
    column::{self, BadColumn, Lasting},
    link::Readable,
};

/// A message as CQL has it.
#[derive(Debug, Clone, SerializeRow, DeserializeRow)]
pub(crate) struct MessageRow<'r> {
    pub(crate) conversation_id: &'r str,
    pub(crate) seq: i64,
    applied: i64,
    event_id: Uuid,
    sender: &'r str,
    body: &'r str,
    content_type: &'r str,
    mentions: Vec<&'r str>,
    mention_all: bool,
    silent: bool,
    reply_to: Lasting<i64>,
    edited_at: CqlTimestamp,
    recalled: bool,
    occurred_at: Lasting<CqlTimestamp>,
    logged_at: CqlTimestamp,
}

impl<'r> MessageRow<'r> {
    pub(crate) fn of(
        conversation: &'r ConversationId,
        stored: &'r Stored,
    ) -> Result<Self, BadColumn> {
        let message = &stored.message;
        let reply_to = message
            .reply_to
            .map(|seq| column::from_seq("reply_to", seq))
            .transpose()?;
        let edited_at = match message.edited_at {
            None => LogTime::START,
            Some(LogTime::START) => {
                return Err(BadColumn::new("edited_at", "would be 0, which says never"));
            }
            Some(at) => at,
        };
        Ok(Self {
            conversation_id: conversation.as_str(),
            seq: column::from_seq("seq", message.seq)?,
            applied: column::from_offset("applied", stored.applied)?,
            event_id: message.event_id.uuid(),
            sender: message.sender.as_str(),
            body: &message.body,
            content_type: &message.content_type,
            mentions: message.mentions.iter().map(UserId::as_str).collect(),
            mention_all: message.mention_all,
            silent: message.silent,
            reply_to: Lasting(reply_to),
            edited_at: column::from_time(edited_at),
            recalled: message.recalled,
            occurred_at: Lasting(message.occurred_at.map(CqlTimestamp)),
            logged_at: column::from_time(message.logged_at),
        })
    }

    /// About how many bytes it takes on the wire.
    pub(crate) fn bytes(&self) -> usize {
        const FIXED: usize = 180;
        let mentions: usize = self.mentions.iter().map(|user| 4 + user.len()).sum();
        FIXED
            + self.conversation_id.len()
            + self.sender.len()
            + self.body.len()
            + self.content_type.len()
            + mentions
    }
}

/// A message and of which conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageOf {
    /// The conversation.
    pub conversation: ConversationId,
    /// The message.
    pub stored: Stored,
}

impl Readable for MessageOf {
    type Row<'r> = MessageRow<'r>;

    fn key(row: &MessageRow<'_>) -> String {
        format!("{}, seq {}", row.conversation_id, row.seq)
    }

    fn read(row: MessageRow<'_>) -> Result<Self, BadColumn> {
        let mentions: Result<Vec<UserId>, BadColumn> = row
            .mentions
            .iter()
            .map(|user| column::user("mentions", user))
            .collect();
        let reply_to = row.reply_to.0;
        let edited_at = match column::time("edited_at", row.edited_at)? {
            LogTime::START => None,
            at => Some(at),
        };
        if row.recalled && !row.body.is_empty() {
            return Err(BadColumn::new("body", "is there though it was recalled"));
        }
        let message = Message {
            seq: column::message_seq("seq", row.seq)?,
            event_id: EventId::new(row.event_id),
            sender: column::user("sender", row.sender)?,
            body: row.body.to_owned(),
            content_type: row.content_type.to_owned(),
            mentions: mentions?,
            mention_all: row.mention_all,
            silent: row.silent,
            reply_to: reply_to
                .map(|seq| column::message_seq("reply_to", seq))
                .transpose()?,
            edited_at,
            recalled: row.recalled,
            occurred_at: row.occurred_at.0.map(|at| at.0),
            logged_at: column::time("logged_at", row.logged_at)?,
        };
        Ok(Self {
            conversation: column::conversation("conversation_id", row.conversation_id)?,
            stored: Stored {
                applied: column::offset("applied", row.applied)?,
                message,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    proptest! {
        #[test]
        fn a_message_reads_back_as_it_was_written(
            conversation in sample::conversation(),
            stored in sample::stored(),
        ) {
            let read = Readable::read(MessageRow::of(&conversation, &stored).unwrap());
            prop_assert_eq!(read, Ok(MessageOf { conversation, stored }));
        }
    }
}
