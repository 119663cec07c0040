//! Which blocks a fold needs, and what they say of a user's numbers.

use std::collections::BTreeSet;

use tidemark_event::{NextOffset, Seq, UserId};

use super::{Block, BlockNo, Session, Sessions, Tally};
use crate::{Accepted, Scene, Stop};

impl Scene<'_, Sessions> {
    /// Makes the newest block the one that `seq`, the next message, falls into.
    pub(super) fn begin_block(&mut self, seq: Seq) {
        let no = BlockNo::of(seq, self.settings.block_seqs);
        if self.head.extra.block.no != no {
            let next =
                Block::beginning_at(seq, self.settings.block_seqs, self.head.extra.block.applied);
            let full = std::mem::replace(&mut self.head.extra.block, next);
            self.pieces.put(full.no, full);
        }
    }

    pub(super) fn require_blocks(&self, from: Seq, to: Seq) -> Result<(), Stop<Sessions>> {
        let newest = self.head.extra.block.no;
        let older =
            || BlockNo::covering(from, to, self.settings.block_seqs).filter(|no| *no < newest);
        self.require_pieces(older())?;
        match older().find(|no| self.pieces.get(no).is_none()) {
            Some(no) => Err(Stop::Damaged {
                what: format!("block {}", no.get()),
            }),
            None => Ok(()),
        }
    }

    pub(super) fn require_block(&self, seq: Seq) -> Result<(), Stop<Sessions>> {
        self.require_blocks(seq, seq)
    }

    pub(super) fn block_of(&self, seq: Seq) -> Option<&Block> {
        let no = BlockNo::of(seq, self.settings.block_seqs);
        if no == self.head.extra.block.no {
            Some(&self.head.extra.block)
        } else {
            self.pieces.get(&no)
        }
    }

    pub(super) fn change_block(
        &mut self,
        accepted: &Accepted<'_>,
        seq: Seq,
        change: impl FnOnce(&mut Block),
    ) {
        let no = BlockNo::of(seq, self.settings.block_seqs);
        if no == self.head.extra.block.no {
            change(&mut self.head.extra.block);
            self.head.extra.block.applied = accepted.offset;
        } else {
            self.pieces.change(&no, accepted.offset, change);
        }
    }

    /// What is unread for `user` from `first` on, derived from the blocks.
    pub(super) fn tally(
        &self,
        user: &UserId,
        first: Seq,
        hidden: &BTreeSet<Seq>,
        known: NextOffset,
    ) -> Result<Tally, Stop<Sessions>> {
        let last = self.head.last_seq;
        self.require_blocks(first, last)?;
        let blocks = BlockNo::covering(first, last, self.settings.block_seqs).filter_map(|no| {
            if no == self.head.extra.block.no {
                Some(&self.head.extra.block)
            } else {
                self.pieces.get(&no)
            }
        });
        let mut tally = Tally::of(blocks, user, first, last, hidden, known);
        tally.keep_for(self.head.extra.mode);
        Ok(tally)
    }

    /// The numbers of `row` once `seq`, which counts in it, does not count any more.
    pub(super) fn tally_without(
        &self,
        user: &UserId,
        row: &Session,
        seq: Seq,
        accepted: &Accepted<'_>,
    ) -> Result<Tally, Stop<Sessions>> {
        let leaves_room = row.tally.is_list_full() && row.tally.mentions.contains(&seq);
        if leaves_room || row.tally.mentioned_all == Some(seq) {
            let mut hidden = row.hidden.clone();
            hidden.insert(seq);
            return self.tally(user, row.first_counting(), &hidden, accepted.before());
        }
        let standing = self
            .block_of(seq)
            .map(|block| block.standing(seq, user, accepted.before()));
        let mut tally = row.tally.clone();
        tally.unread = tally.unread.saturating_sub(1);
        if standing.is_some_and(|standing| standing.mentions) {
            tally.mention_count = tally.mention_count.saturating_sub(1);
            tally.mentions.retain(|named| *named != seq);
        }
        Ok(tally)
    }

    /// The numbers of `row` once `seq`, which counts in it and mentions the user, mentions them no more.
    pub(super) fn tally_without_mention(
        &self,
        user: &UserId,
        row: &Session,
        seq: Seq,
        accepted: &Accepted<'_>,
    ) -> Result<Tally, Stop<Sessions>> {
        let mut tally = row.tally.clone();
        tally.mention_count = tally.mention_count.saturating_sub(1);
        if row.tally.is_list_full() && tally.mentions.contains(&seq) {
            let mut hidden = row.hidden.clone();
            hidden.insert(seq);
            tally.mentions = self
                .tally(user, row.first_counting(), &hidden, accepted.before())?
                .mentions;
        } else {
            tally.mentions.retain(|named| *named != seq);
        }
        Ok(tally)
    }
}
