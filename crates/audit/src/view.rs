//! What an audit must know of a view beside its fold: how its rows are named, compared and replaced.

use tidemark_event::{Payload, Seq, UserId};
use tidemark_fold::{
    GenerationSettings, Never, View,
    inbox::{Inbox, InboxKey, InboxRow},
    roaming::Roaming,
    sessions::{BlockNo, Session, Sessions},
};

use crate::{
    FieldDifference,
    compare::{field, first_difference},
};

/// A view that can be audited.
pub(crate) trait AuditedView: View {
    /// Names a row to people.
    fn row_name(key: &Self::RowKey) -> String;

    /// Names a piece of the view's own to people.
    fn piece_name(key: &Self::PieceKey) -> String;

    /// Whose row it is, if it is one user's.
    fn user_of(key: &Self::RowKey) -> Option<&UserId>;

    /// The first field in which a stored row is not as the fold made it.
    fn row_difference(wanted: &Self::Row, found: &Self::Row) -> Option<FieldDifference>;

    /// When the row expires, if it does, in milliseconds since 1970 UTC.
    fn expires_at(key: &Self::RowKey, settings: &GenerationSettings) -> Option<i64>;

    /// Whether folding such an event may change a row, a member or a piece that is there already. To say yes where it
    /// may not costs time, to say no where it may loses a version.
    fn may_replace(payload: &Payload) -> bool;

    /// Whether the message `seq` makes a piece of what came before it, with an older applied offset than its own.
    fn completes_piece(seq: Seq, settings: &GenerationSettings) -> bool;
}

impl AuditedView for Roaming {
    fn row_name(key: &Seq) -> String {
        format!("seq {key}")
    }

    fn piece_name(key: &Never) -> String {
        match *key {}
    }

    fn user_of(_: &Seq) -> Option<&UserId> {
        None
    }

    fn row_difference(
        wanted: &tidemark_fold::Stored,
        found: &tidemark_fold::Stored,
    ) -> Option<FieldDifference> {
        first_difference(wanted, found)
    }

    fn expires_at(_: &Seq, _: &GenerationSettings) -> Option<i64> {
        None
    }

    fn may_replace(payload: &Payload) -> bool {
        match payload {
            Payload::MessageEdited(_)
            | Payload::MessageRecalled(_)
            | Payload::MembersAdded(_)
            | Payload::MembersRemoved(_)
            | Payload::MessageHidden(_)
            | Payload::HistoryCleared(_) => true,
            Payload::ConversationCreated(_)
            | Payload::ConversationChanged(_)
            | Payload::MessageSent(_)
            | Payload::ReadAdvanced(_)
            | Payload::MarkedUnread(_)
            | Payload::SessionChanged(_)
            | Payload::SessionRemoved(_)
            | Payload::InboxAcked(_) => false,
        }
    }

    fn completes_piece(_: Seq, _: &GenerationSettings) -> bool {
        false
    }
}

impl AuditedView for Sessions {
    fn row_name(key: &UserId) -> String {
        format!("session of {key}")
    }

    fn piece_name(key: &BlockNo) -> String {
        format!("block {}", key.get())
    }

    fn user_of(key: &UserId) -> Option<&UserId> {
        Some(key)
    }

    fn row_difference(wanted: &Session, found: &Session) -> Option<FieldDifference> {
        first_difference(wanted, found)
    }

    fn expires_at(_: &UserId, _: &GenerationSettings) -> Option<i64> {
        None
    }

    fn may_replace(payload: &Payload) -> bool {
        match payload {
            Payload::ConversationChanged(_)
            | Payload::MembersAdded(_)
            | Payload::MembersRemoved(_)
            | Payload::MessageSent(_)
            | Payload::MessageEdited(_)
            | Payload::MessageRecalled(_)
            | Payload::MessageHidden(_)
            | Payload::ReadAdvanced(_)
            | Payload::MarkedUnread(_)
            | Payload::SessionChanged(_)
            | Payload::HistoryCleared(_)
            | Payload::SessionRemoved(_) => true,
            Payload::ConversationCreated(_) | Payload::InboxAcked(_) => false,
        }
    }

    fn completes_piece(seq: Seq, settings: &GenerationSettings) -> bool {
        let block = |seq| BlockNo::of(seq, settings.block_seqs);
        seq > Seq::FIRST && block(seq) != block(seq.previous())
    }
}

impl AuditedView for Inbox {
    fn row_name(key: &InboxKey) -> String {
        match key {
            InboxKey::Copy { user, period, seq } => {
                format!("copy of seq {seq} for {user} in period {}", period.get())
            }
            InboxKey::Place { user } => format!("place of {user}"),
        }
    }

    fn piece_name(key: &Never) -> String {
        match *key {}
    }

    fn user_of(key: &InboxKey) -> Option<&UserId> {
        match key {
            InboxKey::Copy { user, .. } | InboxKey::Place { user } => Some(user),
        }
    }

    fn row_difference(wanted: &InboxRow, found: &InboxRow) -> Option<FieldDifference> {
        match (wanted, found) {
            (InboxRow::Copy(wanted), InboxRow::Copy(found)) => first_difference(wanted, found),
            (InboxRow::Place(wanted), InboxRow::Place(found)) => first_difference(wanted, found),
            (InboxRow::Copy(_), InboxRow::Place(_)) => Some(field("row", "a copy", "a place")),
            (InboxRow::Place(_), InboxRow::Copy(_)) => Some(field("row", "a place", "a copy")),
        }
    }

    fn expires_at(key: &InboxKey, settings: &GenerationSettings) -> Option<i64> {
        match key {
            InboxKey::Copy { period, .. } => Some(period.expires_at(settings)),
            InboxKey::Place { .. } => None,
        }
    }

    fn may_replace(payload: &Payload) -> bool {
        match payload {
            Payload::MessageEdited(_)
            | Payload::MessageRecalled(_)
            | Payload::MembersAdded(_)
            | Payload::MembersRemoved(_)
            | Payload::MessageHidden(_)
            | Payload::HistoryCleared(_)
            | Payload::InboxAcked(_) => true,
            Payload::ConversationCreated(_)
            | Payload::ConversationChanged(_)
            | Payload::MessageSent(_)
            | Payload::ReadAdvanced(_)
            | Payload::MarkedUnread(_)
            | Payload::SessionChanged(_)
            | Payload::SessionRemoved(_) => false,
        }
    }

    fn completes_piece(_: Seq, _: &GenerationSettings) -> bool {
        false
    }
}
