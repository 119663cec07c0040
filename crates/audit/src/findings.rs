//! Differences as they are found: the first ones, and how many there are.

use tidemark_event::{ConversationId, Offset, Partition};
use tidemark_fold::ViewName;

use crate::{Difference, Invariant, What};

/// Differences of one partition.
#[derive(Debug)]
pub(crate) struct Findings {
    partition: Partition,
    limit: usize,
    pub(crate) count: u64,
    pub(crate) listed: Vec<Difference>,
}

impl Findings {
    /// None yet; lists at most `limit`.
    pub(crate) fn new(partition: Partition, limit: usize) -> Self {
        Self {
            partition,
            limit,
            count: 0,
            listed: Vec::new(),
        }
    }

    /// Something is wrong with a part of a conversation, or with what belongs to none.
    pub(crate) fn note(
        &mut self,
        view: ViewName,
        conversation: Option<&ConversationId>,
        key: impl FnOnce() -> String,
        applied: Option<Offset>,
        what: What,
    ) {
        self.count += 1;
        if self.listed.len() < self.limit {
            self.listed.push(Difference {
                view,
                partition: self.partition,
                conversation: conversation.cloned(),
                key: key(),
                applied,
                what,
            });
        }
    }

    /// What is stored of a conversation contradicts itself.
    pub(crate) fn note_broken(
        &mut self,
        (view, invariant): (ViewName, Invariant),
        conversation: &ConversationId,
        key: impl Into<String>,
        applied: Option<Offset>,
        (wanted, found): (String, String),
    ) {
        let what = What::Broken {
            invariant,
            wanted,
            found,
        };
        self.note(view, Some(conversation), || key.into(), applied, what);
    }

    /// Takes in what was found elsewhere in the partition, behind what is here.
    pub(crate) fn append(&mut self, other: Self) {
        let room = self.limit.saturating_sub(self.listed.len());
        self.count += other.count;
        self.listed.extend(other.listed.into_iter().take(room));
    }
}
