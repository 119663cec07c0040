//! What of the views is audited.

use tidemark_event::{ConversationId, UserId};

/// What of the views is audited: everything, unless it is narrowed.
///
/// The log is folded all the same as far as it takes: a whole partition to know one conversation, a whole
/// conversation to know one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only this conversation.
    pub conversation: Option<ConversationId>,
    /// Only what is this user's own: sessions, places, copies, memberships. Heads, messages and pieces of state, which
    /// are everybody's, are then left out.
    pub user: Option<UserId>,
}

impl Scope {
    pub(crate) fn admits_conversation(&self, conversation: &ConversationId) -> bool {
        self.conversation
            .as_ref()
            .is_none_or(|only| only == conversation)
    }

    /// Whether what belongs to `user`, or to everybody, is audited.
    pub(crate) fn admits_user(&self, user: Option<&UserId>) -> bool {
        self.user.as_ref().is_none_or(|only| Some(only) == user)
    }
}
