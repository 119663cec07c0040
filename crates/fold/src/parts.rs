//! Parts of a conversation's state in memory: which are loaded, and which have changed since they were last written.
//!
//! A part loaded from the store may be ahead of the event being folded: a crash or a slower worker left it there. It
//! then already holds the event's effect, so [`Parts::change`] passes it by (rule 2).

use std::collections::BTreeMap;

use tidemark_event::{Offset, UserId};

use crate::{Applied, Member};

#[derive(Debug, Clone)]
struct Slot<T> {
    /// `None`: the store has no such part.
    value: Option<T>,
    is_dirty: bool,
}

/// Parts of one kind, by key.
#[derive(Debug, Clone)]
pub(crate) struct Parts<K, T> {
    slots: BTreeMap<K, Slot<T>>,
    /// What has no slot is absent from the store, rather than not loaded yet.
    others_are_absent: bool,
}

impl<K: Ord + Clone, T: Applied + Clone> Parts<K, T> {
    pub(crate) fn not_loaded() -> Self {
        Self {
            slots: BTreeMap::new(),
            others_are_absent: false,
        }
    }

    /// Of a conversation that the store does not know: nothing needs to be loaded. Parts that a crash left behind
    /// without their head are written again by the same events, and where they are newer they win (rule 3).
    pub(crate) fn all_absent() -> Self {
        Self {
            slots: BTreeMap::new(),
            others_are_absent: true,
        }
    }

    pub(crate) fn knows(&self, key: &K) -> bool {
        self.others_are_absent || self.slots.contains_key(key)
    }

    pub(crate) fn get(&self, key: &K) -> Option<&T> {
        self.slots.get(key).and_then(|slot| slot.value.as_ref())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.slots
            .iter()
            .filter_map(|(key, slot)| Some((key, slot.value.as_ref()?)))
    }

    /// Takes in what the store holds. What is in memory already is at least as new, and stays.
    pub(crate) fn supply(&mut self, key: K, value: Option<T>) {
        self.slots.entry(key).or_insert(Slot {
            value,
            is_dirty: false,
        });
    }

    /// Takes in all parts that the store holds: any other is absent.
    pub(crate) fn supply_all(&mut self, parts: impl IntoIterator<Item = (K, T)>) {
        for (key, value) in parts {
            self.supply(key, Some(value));
        }
        self.others_are_absent = true;
    }

    /// Puts a part as the event at its own applied offset makes it, unless the one in memory has that event already.
    pub(crate) fn put(&mut self, key: K, value: T) {
        let slot = self.slots.entry(key).or_insert(Slot {
            value: None,
            is_dirty: false,
        });
        if slot
            .value
            .as_ref()
            .is_none_or(|present| present.applied() < value.applied())
        {
            *slot = Slot {
                value: Some(value),
                is_dirty: true,
            };
        }
    }

    /// Folds the event at `offset` into a part, unless it is absent or has that event already.
    pub(crate) fn change(&mut self, key: &K, offset: Offset, change: impl FnOnce(&mut T)) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        #[cfg(feature = "planted-faults")]
        let offset_or_later = if crate::planted::is_planted(crate::planted::Fault::NoAppliedOffset)
        {
            Offset::new(i64::MAX)
        } else {
            offset
        };
        #[cfg(not(feature = "planted-faults"))]
        let offset_or_later = offset;
        let value = slot.value.as_mut();
        let Some(value) = value.filter(|value| value.applied() < offset_or_later) else {
            return;
        };
        change(value);
        value.stamp(offset);
        slot.is_dirty = true;
    }

    /// Forgets a part that has not been written yet.
    #[cfg(feature = "planted-faults")]
    pub(crate) fn forget_unwritten(&mut self, key: &K) {
        if self.slots.get(key).is_some_and(|slot| slot.is_dirty) {
            self.slots.remove(key);
        }
    }

    /// Takes out what has changed since the last call, and forgets what need not be kept.
    pub(crate) fn take_changes(&mut self, keep: impl Fn(&K) -> bool) -> Vec<(K, T)> {
        let mut changes = Vec::new();
        let mut is_any_forgotten = false;
        self.slots.retain(|key, slot| {
            let is_kept = keep(key);
            if slot.is_dirty {
                slot.is_dirty = false;
                let value = if is_kept {
                    slot.value.clone()
                } else {
                    slot.value.take()
                };
                changes.extend(value.map(|value| (key.clone(), value)));
            }
            is_any_forgotten |= !is_kept;
            is_kept
        });
        self.others_are_absent &= !is_any_forgotten;
        changes
    }

    pub(crate) fn weight(&self, of: impl Fn(&T) -> usize) -> usize {
        self.slots
            .values()
            .map(|slot| SLOT_BYTES + slot.value.as_ref().map_or(0, &of))
            .sum()
    }
}

/// About what a slot and its key take beside the value.
const SLOT_BYTES: usize = 64;

/// The members of one conversation, present and former.
#[derive(Debug, Clone)]
pub(crate) struct Members(pub(crate) Parts<UserId, Member>);

impl Members {
    pub(crate) fn are_complete(&self) -> bool {
        self.0.others_are_absent
    }

    pub(crate) fn knows(&self, user: &UserId) -> bool {
        self.0.knows(user)
    }

    pub(crate) fn get(&self, user: &UserId) -> Option<&Member> {
        self.0.get(user)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&UserId, &Member)> {
        self.0.iter()
    }
}
