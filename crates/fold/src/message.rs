//! One message as the views keep it.

use serde::{Deserialize, Serialize};
use tidemark_event::{EventId, LogTime, MessageEdited, MessageSent, Offset, Seq, UserId};

use crate::{Accepted, Applied};

/// One message, as sent and with every edit and recall since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its place in the conversation.
    pub seq: Seq,
    /// The id of the event that sent it.
    pub event_id: EventId,
    /// Who sent it.
    pub sender: UserId,
    /// The text; empty once recalled.
    pub body: String,
    /// What the body is.
    pub content_type: String,
    /// Who is addressed by name: a set, in order.
    pub mentions: Vec<UserId>,
    /// Everybody but the sender is addressed.
    pub mention_all: bool,
    /// Never counted as unread.
    pub silent: bool,
    /// The message it answers.
    pub reply_to: Option<Seq>,
    /// Log time of the newest edit.
    pub edited_at: Option<LogTime>,
    /// Taken back for everyone.
    pub recalled: bool,
    /// The sender's own clock, in milliseconds since 1970 UTC. Only ever shown.
    pub occurred_at: Option<i64>,
    /// Log time of the record that sent it.
    pub logged_at: LogTime,
}

impl Message {
    /// The message that an accepted event sent as `seq`.
    pub(crate) fn sent(accepted: &Accepted<'_>, seq: Seq, sent: &MessageSent) -> Self {
        Self {
            seq,
            event_id: accepted.event.id,
            sender: accepted.event.actor.clone(),
            body: sent.body.clone(),
            content_type: sent.content_type.clone(),
            mentions: as_set(&sent.mentions),
            mention_all: sent.mention_all,
            silent: sent.silent,
            reply_to: sent.reply_to,
            edited_at: None,
            recalled: false,
            occurred_at: accepted.event.occurred_at,
            logged_at: accepted.log_time,
        }
    }

    /// Replaces the text, and the mentions where the edit gives them. A recalled message stays as it is.
    pub(crate) fn edit(&mut self, edited: &MessageEdited, log_time: LogTime) {
        if self.recalled {
            return;
        }
        #[cfg(feature = "planted-faults")]
        let log_time = if crate::planted::is_planted(crate::planted::Fault::WallClockInFold) {
            crate::planted::clock()
        } else {
            log_time
        };
        self.body.clone_from(&edited.body);
        self.edited_at = Some(log_time);
        if let Some(mentions) = &edited.mentions {
            self.mentions = as_set(mentions);
        }
    }

    /// About how many bytes the message takes.
    pub fn weight(&self) -> usize {
        const FIXED: usize = 200;
        const MENTION: usize = 32;
        FIXED + self.body.len() + self.content_type.len() + self.mentions.len() * MENTION
    }

    /// Takes the text away for good.
    pub(crate) fn recall(&mut self) {
        self.body.clear();
        self.recalled = true;
    }
}

/// Mentions are a set: who is named twice is named once.
pub(crate) fn as_set(users: &[UserId]) -> Vec<UserId> {
    let mut set = users.to_vec();
    set.sort();
    set.dedup();
    set
}

/// A message as a row of its own: in roaming, or as a copy in somebody's inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The newest event folded into the row.
    pub applied: Offset,
    /// The message.
    pub message: Message,
}

impl Applied for Stored {
    fn applied(&self) -> Offset {
        self.applied
    }

    fn stamp(&mut self, offset: Offset) {
        self.applied = offset;
    }
}
