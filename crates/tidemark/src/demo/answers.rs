//! What the gateway answers, as far as the demo looks at it.

use serde::Deserialize;
use tidemark_event::{ConversationId, Kind, Seq, UserId};

/// `GET /v1/sync`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Sync {
    pub(super) sessions: Vec<Session>,
    pub(super) total_unread: u64,
}

/// One of its sessions.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Session {
    pub(super) conversation_id: ConversationId,
    pub(super) kind: Kind,
    pub(super) title: String,
    pub(super) unread: u64,
    pub(super) unread_mentions: Vec<Seq>,
    pub(super) mentioned_all_seq: Option<Seq>,
    pub(super) last_seq: Seq,
    pub(super) pinned: bool,
    pub(super) draft: String,
    #[serde(default)]
    pub(super) messages: Vec<Message>,
}

/// One of a session's newest messages.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Message {
    pub(super) sender: UserId,
    pub(super) body: Option<String>,
    /// In RFC 3339.
    pub(super) occurred_at: Option<String>,
}

/// `GET /v1/mentions`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Mentions {
    pub(super) mentions: Vec<Mention>,
}

/// One of them.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Mention {
    pub(super) conversation_id: ConversationId,
    pub(super) title: String,
    pub(super) seq: Seq,
    pub(super) sender: UserId,
    pub(super) preview: Option<String>,
}
