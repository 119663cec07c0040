//! What the model answers with: plain values, compared whole.

use tidemark_event::{ConversationId, EventId, Kind, LogTime, Seq, UserId};

/// A message as everybody sees it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its place in the conversation.
    pub seq: Seq,
    /// The id of the event that sent it.
    pub event_id: EventId,
    /// Who sent it.
    pub sender: UserId,
    /// The text as last edited; empty once recalled.
    pub body: String,
    /// What the body is.
    pub content_type: String,
    /// Who is addressed by name as last edited, ascending and each once. Stored on after a recall, and then without effect.
    pub mentions: Vec<UserId>,
    /// Everybody but the sender is addressed.
    pub mention_all: bool,
    /// Never counted as unread.
    pub silent: bool,
    /// The message it answers.
    pub reply_to: Option<Seq>,
    /// Log time of the newest edit that changed it.
    pub edited_at: Option<LogTime>,
    /// Taken back for everyone.
    pub recalled: bool,
    /// The sender's own clock, in milliseconds since 1970 UTC.
    pub occurred_at: Option<i64>,
    /// Log time of its sending.
    pub logged_at: LogTime,
}

/// One user's session in one conversation: the table of `docs/rules.md`, field by field.
///
/// For who left it is what it was right after the leaving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The conversation.
    pub conversation: ConversationId,
    /// Direct or group.
    pub kind: Kind,
    /// The conversation's title; empty for none.
    pub title: String,
    /// How many members there are.
    pub members: usize,
    /// The conversation's last seq.
    pub last_seq: Seq,
    /// The conversation's newest message, where visible to the user.
    pub last_message: Option<Message>,
    /// Log time of the newest message since the user's latest join; before any, of that join.
    pub last_active_at: LogTime,
    /// Read up to here.
    pub read_seq: Seq,
    /// How many seqs count as unread.
    pub unread: u64,
    /// The seqs that count as unread and mention the user by name, all of them, ascending.
    pub unread_mentions: Vec<Seq>,
    /// The newest seq that counts as unread and addresses everybody.
    pub mentioned_all: Option<Seq>,
    /// Cleared up to here; 0 for never.
    pub cleared_to: Seq,
    /// Direct: the greatest read seq that the other one has ever had.
    pub peer_read_seq: Option<Seq>,
    /// Marked unread, and not yet read to the end again.
    pub marked_unread: bool,
    /// Listed first.
    pub pinned: bool,
    /// Left out of the total.
    pub muted: bool,
    /// Text begun and not sent; empty for none.
    pub draft: String,
    /// No present membership.
    pub left: bool,
    /// On the user's list: not removed from it, or a message came since.
    pub listed: bool,
}

/// An unread message that mentions a user by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Where.
    pub conversation: ConversationId,
    /// The message.
    pub seq: Seq,
    /// Log time of its sending.
    pub logged_at: LogTime,
}
