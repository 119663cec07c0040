//! A message as clients read it.

use serde::Serialize;
use tidemark_event::{ConversationId, EventId, Seq, UserId};
use tidemark_fold::Message;
use utoipa::ToSchema;

use crate::time::Time;

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Message)]
pub(crate) struct MessageJson {
    /// The conversation that it is in.
    #[schema(value_type = String)]
    pub(crate) conversation_id: ConversationId,
    /// Its place there: 1, 2, 3 … without gaps.
    #[schema(value_type = u64)]
    pub(crate) seq: Seq,
    /// The id of the event that sent it.
    #[schema(value_type = String, format = Uuid)]
    pub(crate) event_id: EventId,
    /// Who sent it.
    #[schema(value_type = String)]
    pub(crate) sender: UserId,
    /// The text, or whatever the content type says; null where it was recalled.
    pub(crate) body: Option<String>,
    /// What the body is: `text`, `system` or a product's own word.
    pub(crate) content_type: String,
    /// Who is addressed by name.
    #[schema(value_type = Vec<String>)]
    pub(crate) mentions: Vec<UserId>,
    /// Everybody but the sender is addressed.
    pub(crate) mention_all: bool,
    /// Never counted as unread.
    pub(crate) silent: bool,
    /// The message that it answers.
    #[schema(value_type = Option<u64>)]
    pub(crate) reply_to: Option<Seq>,
    /// When it was edited last.
    pub(crate) edited_at: Option<Time>,
    /// Taken back for everyone.
    pub(crate) recalled: bool,
    /// The sender's own clock. Only to be shown.
    pub(crate) occurred_at: Option<Time>,
    /// When the log took it.
    pub(crate) logged_at: Time,
}

impl MessageJson {
    pub(crate) fn of(conversation: &ConversationId, message: &Message) -> Self {
        Self {
            conversation_id: conversation.clone(),
            seq: message.seq,
            event_id: message.event_id,
            sender: message.sender.clone(),
            body: (!message.recalled).then(|| message.body.clone()),
            content_type: message.content_type.clone(),
            mentions: message.mentions.clone(),
            mention_all: message.mention_all,
            silent: message.silent,
            reply_to: message.reply_to,
            edited_at: message.edited_at.map(Time::from),
            recalled: message.recalled,
            occurred_at: message.occurred_at.and_then(Time::of_millis),
            logged_at: message.logged_at.into(),
        }
    }
}

/// The newest message of a session, cut short; the same in a list of mentions.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = LastMessage)]
pub(crate) struct PreviewJson {
    /// Its place in the conversation.
    #[schema(value_type = u64)]
    pub(crate) seq: Seq,
    /// Who sent it.
    #[schema(value_type = String)]
    pub(crate) sender: UserId,
    /// The first 100 characters of its body; null where it was recalled.
    pub(crate) preview: Option<String>,
    /// What the body is.
    pub(crate) content_type: String,
    /// Taken back for everyone.
    pub(crate) recalled: bool,
    /// When the log took it.
    pub(crate) at: Time,
}

impl PreviewJson {
    pub(crate) fn of(message: &Message) -> Self {
        use tidemark_fold::sessions::PREVIEW_CHARACTERS;

        let preview = || message.body.chars().take(PREVIEW_CHARACTERS).collect();
        Self {
            seq: message.seq,
            sender: message.sender.clone(),
            preview: (!message.recalled).then(preview),
            content_type: message.content_type.clone(),
            recalled: message.recalled,
            at: message.logged_at.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample;

    #[test]
    fn a_message_shows_every_field() {
        let (g1, mut message) = (sample::conversation("g1"), sample::message(7, "bo"));
        let shown = serde_json::to_value(MessageJson::of(&g1, &message)).unwrap();
        let expected = json!({
            "conversation_id": "g1",
            "seq": 7,
            "event_id": message.event_id,
            "sender": "bo",
            "body": "message 7",
            "content_type": "text",
            "mentions": [],
            "mention_all": false,
            "silent": false,
            "reply_to": null,
            "edited_at": null,
            "recalled": false,
            "occurred_at": null,
            "logged_at": "1970-01-01T00:00:07.000Z",
        });
        assert_eq!(shown, expected);

        message.recalled = true;
        message.body.clear();
        assert_eq!(MessageJson::of(&g1, &message).body, None);
    }

    #[test]
    fn a_preview_is_cut_at_a_character() {
        let mut message = sample::message(7, "bo");
        message.body = "ä".repeat(101);
        let preview = PreviewJson::of(&message).preview.unwrap();
        assert_eq!(preview, "ä".repeat(100));
        message.recalled = true;
        assert_eq!(PreviewJson::of(&message).preview, None);
    }
}
