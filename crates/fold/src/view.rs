//! What the three views have in common: a head, pieces, rows, and the parts of a conversation a fold works on.

use std::{collections::BTreeSet, fmt::Debug};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tidemark_event::{Fingerprint, History, Kind, LogTime, Offset, Seq, UserId};

use crate::{
    Accepted, DedupeIndex, GenerationSettings, PieceNo, Stop,
    parts::{Members, Parts},
};

/// A view's name, as it stands in topics, tables, groups and commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ViewName {
    /// The permanent history.
    Roaming,
    /// The session index.
    Sessions,
    /// What a user's devices have yet to store.
    Inbox,
}

impl ViewName {
    /// Every view.
    pub const ALL: [Self; 3] = [Self::Roaming, Self::Sessions, Self::Inbox];

    /// The name as text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Roaming => "roaming",
            Self::Sessions => "sessions",
            Self::Inbox => "inbox",
        }
    }
}

impl std::fmt::Display for ViewName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A row or piece that knows the newest event folded into it: rule 2, and the timestamp of its cells by rule 3.
pub trait Applied {
    /// The offset of the newest event folded into it.
    fn applied(&self) -> Offset;

    /// Notes that the event at `offset` was folded into it.
    fn stamp(&mut self, offset: Offset);
}

/// For views without pieces of their own: there is no such value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Never {}

impl Applied for Never {
    fn applied(&self) -> Offset {
        match *self {}
    }

    fn stamp(&mut self, _offset: Offset) {
        match *self {}
    }
}

/// One read model as a fold.
pub trait View: Sized + Debug + 'static {
    /// The view's name.
    const NAME: ViewName;
    /// What the view keeps in a conversation's head beside what all views keep there.
    type Extra: Debug + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync;
    /// Names a row within its conversation.
    type RowKey: Debug + Clone + Ord + Send + Sync;
    /// A row that readers are served from.
    type Row: Debug + Clone + PartialEq + Applied + Send + Sync;
    /// Names a piece of state of the view's own within its conversation.
    type PieceKey: Debug + Clone + Ord + Send + Sync;
    /// A piece of state of the view's own.
    type Piece: Debug + Clone + PartialEq + Serialize + DeserializeOwned + Applied + Send + Sync;

    /// The head's extra part of a conversation that begins with `accepted`, before its effect.
    fn begin(accepted: &Accepted<'_>) -> Self::Extra;

    /// Folds the effect of one accepted event into the view's rows, pieces and extra part.
    ///
    /// The members in `scene` are still those before the event. Every part is asked for before any is changed, so
    /// that a stop leaves the scene as it was.
    ///
    /// # Errors
    /// [`Stop::Needs`] with all parts found missing; [`Stop::Damaged`] where the store lacks what must be there.
    fn apply(accepted: &Accepted<'_>, scene: &mut Scene<'_, Self>) -> Result<(), Stop<Self>>;

    /// Parts that folding `event` will most likely ask for, so that a batch loads them in one wave. A guess:
    /// leaving one out costs a wave, naming one too many costs a read.
    fn foresee(
        event: &tidemark_event::Event,
        head: &Head<Self::Extra>,
        settings: &GenerationSettings,
    ) -> Needs<Self>;

    /// Whether the row is worth keeping in memory between batches.
    fn keeps_in_memory(key: &Self::RowKey) -> bool;

    /// About how many bytes a row takes in memory.
    fn weight(row: &Self::Row) -> usize;
}

/// A conversation's one row of state in a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head<Extra> {
    /// The newest accepted event.
    pub applied: Offset,
    /// The fingerprint of that event's record.
    pub fingerprint: Fingerprint,
    /// Log time of that event.
    pub log_time: LogTime,
    /// The newest message.
    pub last_seq: Seq,
    /// Direct or group.
    pub kind: Kind,
    /// The title as of now; empty for none.
    pub title: String,
    /// What those who join from now on may see.
    pub history: History,
    /// Tells the content it was created with from other content.
    pub creation: u64,
    /// How many members there are.
    pub members: u32,
    /// Which event ids were accepted lately.
    pub dedupe: DedupeIndex,
    /// The view's own part.
    pub extra: Extra,
}

/// A part of a conversation's state that a fold asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need<RowKey, PieceKey> {
    /// The head.
    Head,
    /// All ids of a dedupe piece.
    Dedupe(PieceNo),
    /// One member.
    Member(UserId),
    /// Every member, former ones too.
    AllMembers,
    /// A piece of the view's own.
    Piece(PieceKey),
    /// A row.
    Row(RowKey),
}

/// Parts that are missing.
pub type Needs<V> = BTreeSet<Need<<V as View>::RowKey, <V as View>::PieceKey>>;

/// What a view's fold may look at and change: one conversation, while one event is folded.
#[derive(Debug)]
pub struct Scene<'a, V: View> {
    pub(crate) settings: &'a GenerationSettings,
    pub(crate) head: &'a mut Head<V::Extra>,
    pub(crate) members: &'a Members,
    pub(crate) rows: &'a mut Parts<V::RowKey, V::Row>,
    pub(crate) pieces: &'a mut Parts<V::PieceKey, V::Piece>,
}

impl<V: View> Scene<'_, V> {
    /// Everybody who is a member just before the event at `event`.
    pub(crate) fn present_as_of(&self, event: Offset) -> Result<Vec<UserId>, Stop<V>> {
        if !self.members.are_complete() {
            return Err(Stop::Needs(Needs::<V>::from([Need::AllMembers])));
        }
        Ok(self
            .members
            .iter()
            .filter(|(_, member)| member.is_present_as_of(event))
            .map(|(user, _)| user.clone())
            .collect())
    }

    /// Stops unless all of these rows are in memory, or known to be absent.
    pub(crate) fn require_rows(
        &self,
        keys: impl IntoIterator<Item = V::RowKey>,
    ) -> Result<(), Stop<V>> {
        let missing: Needs<V> = keys
            .into_iter()
            .filter(|key| !self.rows.knows(key))
            .map(Need::Row)
            .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Stop::Needs(missing))
        }
    }

    /// Stops unless all of these pieces are in memory.
    pub(crate) fn require_pieces(
        &self,
        keys: impl IntoIterator<Item = V::PieceKey>,
    ) -> Result<(), Stop<V>> {
        let missing: Needs<V> = keys
            .into_iter()
            .filter(|key| !self.pieces.knows(key))
            .map(Need::Piece)
            .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Stop::Needs(missing))
        }
    }
}
