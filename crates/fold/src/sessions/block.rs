//! Blocks: which messages of a stretch of seqs count, who sent them, whom they mention.
//!
//! A block is a piece of state, so each fact in it carries the offset that made or ended it and is looked at as of the
//! event's own offset: `known` is the next offset to fold, and only facts of records below it are there. A fact is never removed: a recall or a mention edited away is marked with its offset.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tidemark_event::{NextOffset, Offset, Seq, UserId};

use crate::Applied;

/// The number of a block within its conversation, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockNo(u64);

impl BlockNo {
    /// The block that `seq`, which is not 0, falls into.
    pub fn of(seq: Seq, block_seqs: u64) -> Self {
        Self(seq.get().saturating_sub(1) / block_seqs.max(1))
    }

    /// Takes a stored number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Blocks that the seqs `from..=to` fall into; none where `from` is above `to`.
    pub fn covering(from: Seq, to: Seq, block_seqs: u64) -> impl Iterator<Item = Self> {
        let range = if from <= to {
            Self::of(from, block_seqs).0..Self::of(to, block_seqs).0 + 1
        } else {
            0..0
        };
        range.map(Self)
    }
}

/// What is kept of a stretch of messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The newest event folded into the block.
    pub applied: Offset,
    /// Its number.
    pub no: BlockNo,
    /// The seq of its first entry.
    pub first: Seq,
    /// Users that entries name, each once: entries name them by their place here.
    pub users: Vec<UserId>,
    /// One entry a message, in order of seq, without gaps.
    pub entries: Vec<Entry>,
}

/// What is kept of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The event that sent it.
    pub sent: Offset,
    /// Who sent it.
    pub sender: u32,
    /// It can count as unread: neither silent nor a system message.
    pub counts: bool,
    /// It mentions everybody.
    pub mention_all: bool,
    /// Whom it mentions or has mentioned by name.
    pub mentions: Vec<Mention>,
    /// The event that took it back.
    pub recalled: Option<Offset>,
}

/// A mention by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// Who is mentioned.
    pub user: u32,
    /// The event that made it: the message or an edit.
    pub from: Offset,
    /// The edit that took it away.
    pub until: Option<Offset>,
}

/// What a block says of one message for one user, as of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) counts: bool,
    pub(crate) mentions: bool,
    pub(crate) mention_all: bool,
}

impl Applied for Block {
    fn applied(&self) -> Offset {
        self.applied
    }

    fn stamp(&mut self, offset: Offset) {
        self.applied = offset;
    }
}

impl Block {
    pub(crate) fn beginning_at(seq: Seq, block_seqs: u64, applied: Offset) -> Self {
        let no = BlockNo::of(seq, block_seqs);
        Self {
            applied,
            no,
            first: seq,
            users: Vec::new(),
            entries: Vec::new(),
        }
    }

    pub(crate) fn append(
        &mut self,
        sent: Offset,
        sender: &UserId,
        counts: bool,
        mention_all: bool,
        mentions: &[UserId],
    ) {
        let sender = self.place_of(sender);
        let mentions = mentions
            .iter()
            .map(|user| Mention {
                user: self.place_of(user),
                from: sent,
                until: None,
            })
            .collect();
        self.entries.push(Entry {
            sent,
            sender,
            counts,
            mention_all,
            mentions,
            recalled: None,
        });
        self.applied = sent;
    }

    pub(crate) fn recall(&mut self, seq: Seq, at: Offset) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.recalled.get_or_insert(at);
        }
    }

    /// Replaces the mentions of a message by an edit.
    pub(crate) fn mention(&mut self, seq: Seq, users: &[UserId], at: Offset) {
        let places: Vec<u32> = users.iter().map(|user| self.place_of(user)).collect();
        let Some(entry) = self.entry_mut(seq).filter(|entry| entry.recalled.is_none()) else {
            return;
        };
        for mention in entry
            .mentions
            .iter_mut()
            .filter(|mention| mention.until.is_none())
        {
            if !places.contains(&mention.user) {
                mention.until = Some(at);
            }
        }
        for user in places {
            if !entry
                .mentions
                .iter()
                .any(|mention| mention.user == user && mention.until.is_none())
            {
                entry.mentions.push(Mention {
                    user,
                    from: at,
                    until: None,
                });
            }
        }
    }

    /// Who is mentioned by name in `seq`, as `known`.
    pub(crate) fn mentioned(&self, seq: Seq, known: NextOffset) -> BTreeSet<UserId> {
        let Some(entry) = self.entry(seq) else {
            return BTreeSet::new();
        };
        let standing = entry
            .mentions
            .iter()
            .filter(|mention| mention.stands(known));
        standing
            .filter_map(|mention| self.users.get(mention.user as usize))
            .cloned()
            .collect()
    }

    /// Whether `seq` was taken back, as `known`.
    pub(crate) fn is_recalled(&self, seq: Seq, known: NextOffset) -> bool {
        self.entry(seq)
            .and_then(|entry| entry.recalled)
            .is_some_and(|at| !known.admits(at))
    }

    /// What the block says of `seq` for `user`, as `known`. Read position, membership and
    /// what the user hid are for the caller to look at.
    pub(crate) fn standing(&self, seq: Seq, user: &UserId, known: NextOffset) -> Standing {
        let nothing = Standing {
            counts: false,
            mentions: false,
            mention_all: false,
        };
        let Some(entry) = self.entry(seq) else {
            return nothing;
        };
        self.judge(entry, self.place(user), known)
    }

    /// As [`Self::standing`], for every seq in `from..=to` that the block holds, ascending.
    pub(crate) fn standings(
        &self,
        from: Seq,
        to: Seq,
        user: &UserId,
        known: NextOffset,
    ) -> impl DoubleEndedIterator<Item = (Seq, Standing)> {
        let place = self.place(user);
        let first = self.first.get();
        let begin = (from.get().saturating_sub(first) as usize).min(self.entries.len());
        let end = ((to.get() + 1).saturating_sub(first) as usize).clamp(begin, self.entries.len());
        self.entries[begin..end]
            .iter()
            .enumerate()
            .map(move |(index, entry)| {
                (
                    Seq::new(first + (begin + index) as u64),
                    self.judge(entry, place, known),
                )
            })
    }

    fn judge(&self, entry: &Entry, user: Option<u32>, known: NextOffset) -> Standing {
        let is_own = user == Some(entry.sender);
        let is_recalled = entry.recalled.is_some_and(|at| !known.admits(at));
        let counts = !known.admits(entry.sent) && entry.counts && !is_own && !is_recalled;
        let is_mentioned = user.is_some_and(|user| {
            entry
                .mentions
                .iter()
                .any(|it| it.user == user && it.stands(known))
        });
        Standing {
            counts,
            mentions: counts && is_mentioned,
            mention_all: counts && entry.mention_all,
        }
    }

    fn entry(&self, seq: Seq) -> Option<&Entry> {
        let index = seq.get().checked_sub(self.first.get())?;
        self.entries.get(usize::try_from(index).ok()?)
    }

    fn entry_mut(&mut self, seq: Seq) -> Option<&mut Entry> {
        let index = seq.get().checked_sub(self.first.get())?;
        self.entries.get_mut(usize::try_from(index).ok()?)
    }

    fn place(&self, user: &UserId) -> Option<u32> {
        self.users
            .iter()
            .position(|known| known == user)
            .and_then(|index| u32::try_from(index).ok())
    }

    fn place_of(&mut self, user: &UserId) -> u32 {
        self.place(user).unwrap_or_else(|| {
            self.users.push(user.clone());
            u32::try_from(self.users.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

impl Mention {
    fn stands(&self, known: NextOffset) -> bool {
        !known.admits(self.from) && self.until.is_none_or(|until| known.admits(until))
    }
}
