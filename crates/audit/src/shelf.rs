//! What the store holds of one partition of the log, as plain data: one side of the comparison.

use std::collections::BTreeMap;

use tidemark_event::{ConversationId, Offset, UserId};
use tidemark_fold::{
    AcceptedId, GenerationSettings, Head, Member, PieceNo, View, inbox::Inbox, roaming::Roaming,
    sessions::Sessions,
};
use tidemark_store::Checkpoint;

/// What the store holds of one partition, in the views that are audited.
///
/// It need not be of one moment, but was read in this order: all checkpoints; session rows; all heads; all members and
/// places; messages and copies; pieces. On that order rests what is compared while workers write.
#[derive(Debug, Default)]
pub struct Shelves {
    /// The permanent history.
    pub roaming: Option<Shelf<Roaming>>,
    /// The session index.
    pub sessions: Option<Shelf<Sessions>>,
    /// What devices have yet to store.
    pub inbox: Option<Shelf<Inbox>>,
    /// When copies were read, which expire by the clock.
    pub seen: Seen,
}

/// When something was read, in milliseconds since 1970 UTC by this machine's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Reading began then.
    pub from: i64,
    /// Reading ended then.
    pub to: i64,
}

/// What the store holds of one partition in one view.
#[derive(Debug, Clone)]
pub struct Shelf<V: View> {
    /// Which build of the view.
    pub generation: u16,
    /// What it is built with.
    pub settings: GenerationSettings,
    /// How far the view has come, read before anything else; none where it has not begun.
    pub checkpoint: Option<Checkpoint>,
    /// Everything else.
    pub conversations: BTreeMap<ConversationId, StoredConversation<V>>,
    /// Rows that no reader will find, and so none to compare.
    pub misplaced: Vec<Misplaced>,
}

/// What the store holds of one conversation in one view.
#[derive(Debug, Clone)]
pub struct StoredConversation<V: View> {
    /// The head.
    pub head: Option<Head<V::Extra>>,
    /// Everybody who is or was a member.
    pub members: BTreeMap<UserId, Member>,
    /// Accepted ids, by those pieces that the head calls live: only they are looked for.
    pub ids: BTreeMap<PieceNo, Vec<AcceptedId>>,
    /// Pieces of the view's own, of those that the head implies: only they are looked for.
    pub pieces: BTreeMap<V::PieceKey, V::Piece>,
    /// Rows.
    pub rows: BTreeMap<V::RowKey, V::Row>,
}

/// A row that stands where its readers do not look, or a second one of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misplaced {
    /// The conversation.
    pub conversation: ConversationId,
    /// Which row.
    pub key: String,
    /// Its applied offset.
    pub applied: Offset,
    /// Where it should be.
    pub wanted: String,
    /// Where it is.
    pub found: String,
}

impl<V: View> Shelf<V> {
    /// A shelf with nothing on it.
    pub fn empty(generation: u16, settings: GenerationSettings) -> Self {
        Self {
            generation,
            settings,
            checkpoint: None,
            conversations: BTreeMap::new(),
            misplaced: Vec::new(),
        }
    }

    /// What there is of a conversation, to be added to.
    pub fn conversation(&mut self, conversation: ConversationId) -> &mut StoredConversation<V> {
        self.conversations.entry(conversation).or_default()
    }

    /// Whether the checkpoint promises that the event at `offset` shows in everything stored.
    pub(crate) fn promises(&self, offset: Offset) -> bool {
        self.checkpoint
            .is_some_and(|checkpoint| !checkpoint.next_offset.admits(offset))
    }

    /// Whether what was read after the heads shows every event of the conversation up to `offset`.
    pub(crate) fn covers(&self, conversation: &ConversationId, offset: Offset) -> bool {
        let head = self
            .conversations
            .get(conversation)
            .and_then(|stored| stored.head.as_ref());
        self.promises(offset) || head.is_some_and(|head| head.applied >= offset)
    }
}

impl<V: View> Default for StoredConversation<V> {
    fn default() -> Self {
        Self {
            head: None,
            members: BTreeMap::new(),
            ids: BTreeMap::new(),
            pieces: BTreeMap::new(),
            rows: BTreeMap::new(),
        }
    }
}
