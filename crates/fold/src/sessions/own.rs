//! What a user does about their own session: reading, hiding, settings, clearing.
//!
//! Only the actor's row changes, and in a direct chat the other's, who is shown how far the actor has read. Whether
//! the other's row changes must not hang on the actor's: after a crash between the two one may be ahead.

use tidemark_event::{Kind, Seq, SessionChanged, UserId};

use super::{Session, Sessions, Tally, first_counting};
use crate::{Accepted, Scene, Stop};

impl Scene<'_, Sessions> {
    pub(super) fn hide(&mut self, accepted: &Accepted<'_>, seq: Seq) -> Result<(), Stop<Sessions>> {
        let actor = &accepted.event.actor;
        self.require_sessions([actor])?;
        let Some(row) = self.rows.get(actor) else {
            return Ok(());
        };
        let tally = if row.counts(seq) {
            self.require_block(seq)?;
            let standing = self
                .block_of(seq)
                .map(|block| block.standing(seq, actor, accepted.before()));
            match standing {
                Some(standing) if standing.counts => {
                    Some(self.tally_without(actor, row, seq, accepted)?)
                }
                _ => None,
            }
        } else {
            None
        };
        self.rows.change(actor, accepted.offset, |row| {
            if seq > row.cleared_to {
                row.hidden.insert(seq);
            }
            if let Some(tally) = tally {
                row.tally = tally;
            }
        });
        Ok(())
    }

    pub(super) fn read(&mut self, accepted: &Accepted<'_>, seq: Seq) -> Result<(), Stop<Sessions>> {
        let actor = &accepted.event.actor;
        self.require_sessions([actor])?;
        let peers = self.peers(accepted)?;
        let advanced = match self.rows.get(actor).filter(|row| row.read_seq < seq) {
            Some(row) => {
                let first = first_counting(seq, row.cleared_to, row.since);
                Some(self.tally(actor, first, &row.hidden, accepted.after())?)
            }
            None => None,
        };
        // Whatever the actor's own row says: after a crash between the two it may be ahead of the other's.
        self.show_peers(accepted, &peers, seq);
        let Some(tally) = advanced else { return Ok(()) };
        let last = self.head.last_seq;
        self.rows.change(actor, accepted.offset, |row| {
            row.read_seq = seq;
            row.marked_unread &= seq < last;
            row.tally = tally;
        });
        Ok(())
    }

    pub(super) fn mark_unread(
        &mut self,
        accepted: &Accepted<'_>,
        from: Seq,
    ) -> Result<(), Stop<Sessions>> {
        let actor = &accepted.event.actor;
        self.require_sessions([actor])?;
        let Some(row) = self.rows.get(actor).filter(|row| from <= row.read_seq) else {
            return Ok(());
        };
        let first = first_counting(from.previous(), row.cleared_to, row.since);
        let tally = self.tally(actor, first, &row.hidden, accepted.after())?;
        self.rows.change(actor, accepted.offset, |row| {
            row.read_seq = from.previous();
            row.marked_unread = true;
            row.tally = tally;
        });
        Ok(())
    }

    pub(super) fn set(
        &mut self,
        accepted: &Accepted<'_>,
        changed: &SessionChanged,
    ) -> Result<(), Stop<Sessions>> {
        let actor = &accepted.event.actor;
        self.require_sessions([actor])?;
        self.rows.change(actor, accepted.offset, |row| {
            row.pinned = changed.pinned.unwrap_or(row.pinned);
            row.muted = changed.muted.unwrap_or(row.muted);
            if let Some(draft) = &changed.draft {
                row.draft.clone_from(draft);
            }
        });
        Ok(())
    }

    /// Reads everything, by clearing or removing the session.
    pub(super) fn settle(
        &mut self,
        accepted: &Accepted<'_>,
        change: impl FnOnce(&mut Session),
    ) -> Result<(), Stop<Sessions>> {
        let actor = &accepted.event.actor;
        let last = self.head.last_seq;
        self.require_sessions([actor])?;
        let peers = self.peers(accepted)?;
        self.rows.change(actor, accepted.offset, |row| {
            row.read_seq = last;
            row.marked_unread = false;
            row.tally = Tally::default();
            change(row);
        });
        self.show_peers(accepted, &peers, last);
        Ok(())
    }

    /// In a direct chat the other one, who is shown how far the actor has read.
    pub(super) fn peers(&self, accepted: &Accepted<'_>) -> Result<Vec<UserId>, Stop<Sessions>> {
        if self.head.kind != Kind::Direct {
            return Ok(Vec::new());
        }
        let mut present = self.present_as_of(accepted.offset)?;
        present.retain(|user| *user != accepted.event.actor);
        self.require_sessions(&present)?;
        Ok(present)
    }

    pub(super) fn show_peers(&mut self, accepted: &Accepted<'_>, peers: &[UserId], read_seq: Seq) {
        for peer in peers {
            if self
                .rows
                .get(peer)
                .is_some_and(|row| row.peer_read_seq < read_seq)
            {
                self.rows
                    .change(peer, accepted.offset, |row| row.peer_read_seq = read_seq);
            }
        }
    }
}
