//! Counts what is unread for one user, from the blocks alone.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tidemark_event::{NextOffset, Seq, UserId};

use super::{Block, MAX_MENTIONS_NAMED, Mode};

/// What is unread for one user.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// How many messages count.
    pub unread: u64,
    /// How many of them mention the user by name.
    pub mention_count: u64,
    /// The newest of those, at most [`MAX_MENTIONS_NAMED`], ascending.
    pub mentions: Vec<Seq>,
    /// The newest that mentions everybody.
    pub mentioned_all: Option<Seq>,
}

impl Tally {
    /// Counts over the seqs `from..=to` that are not `hidden`, as `known`: facts of records below that offset. `blocks` are
    /// those that cover the range, in any order.
    pub fn of<'b>(
        blocks: impl IntoIterator<Item = &'b Block>,
        user: &UserId,
        from: Seq,
        to: Seq,
        hidden: &BTreeSet<Seq>,
        known: NextOffset,
    ) -> Self {
        let mut tally = Self::default();
        for block in blocks {
            for (seq, standing) in block.standings(from, to, user, known) {
                if !standing.counts || hidden.contains(&seq) {
                    continue;
                }
                tally.unread += 1;
                if standing.mentions {
                    tally.mention_count += 1;
                    tally.mentions.push(seq);
                }
                if standing.mention_all {
                    tally.mentioned_all = tally.mentioned_all.max(Some(seq));
                }
            }
        }
        tally.mentions.sort();
        tally.name_newest();
        tally
    }

    /// Adds a message that counts, newer than all that are in.
    pub(crate) fn add(&mut self, seq: Seq, mentions: bool, mention_all: bool) {
        self.unread += 1;
        if mentions {
            self.mention_count += 1;
            self.mentions.push(seq);
            self.name_newest();
        }
        if mention_all {
            self.mentioned_all = Some(seq);
        }
    }

    /// The same with a mention by name in a message that counts already.
    pub(crate) fn with_mention(&self, seq: Seq) -> Self {
        let mut tally = self.clone();
        tally.mention_count += 1;
        // Where older ones are left out, one older than all that are named is left out as well.
        if !self.is_list_full() || self.mentions.first().is_none_or(|oldest| *oldest < seq) {
            tally.mentions.push(seq);
            tally.mentions.sort();
            tally.name_newest();
        }
        tally
    }

    /// Whether there are more mentions than are named.
    pub(crate) fn is_list_full(&self) -> bool {
        self.mention_count > self.mentions.len() as u64
    }

    /// Leaves out what rows of this mode do not keep.
    pub(crate) fn keep_for(&mut self, mode: Mode) {
        if mode == Mode::Combined {
            self.unread = 0;
            self.mentioned_all = None;
        }
    }

    fn name_newest(&mut self) {
        let left_out = self.mentions.len().saturating_sub(MAX_MENTIONS_NAMED);
        self.mentions.drain(..left_out);
    }
}
