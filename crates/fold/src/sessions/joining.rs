//! Who is in a conversation, and what it is called: the rows of those who join, stay and leave.

use std::collections::BTreeSet;

use tidemark_event::{Seq, UserId};

use super::{Mode, Session, Sessions, Tally, fold::count};
use crate::{Accepted, Member, Scene, Stop};

impl Scene<'_, Sessions> {
    pub(super) fn create(
        &mut self,
        accepted: &Accepted<'_>,
        users: &BTreeSet<UserId>,
    ) -> Result<(), Stop<Sessions>> {
        if users.len() > self.settings.fan_out_limit as usize {
            self.head.extra.mode = Mode::Combined;
        }
        for user in users {
            let row = self.joined(accepted, Seq::FIRST, users.len());
            self.rows.put(user.clone(), row);
        }
        Ok(())
    }

    pub(super) fn rename(
        &mut self,
        accepted: &Accepted<'_>,
        title: &str,
    ) -> Result<(), Stop<Sessions>> {
        for user in self.fanned_out(accepted)? {
            self.rows.change(&user, accepted.offset, |row| {
                title.clone_into(&mut row.title)
            });
        }
        Ok(())
    }

    pub(super) fn join(
        &mut self,
        accepted: &Accepted<'_>,
        users: &BTreeSet<UserId>,
        since: Seq,
        opens: bool,
    ) -> Result<(), Stop<Sessions>> {
        if users.is_empty() {
            return Ok(());
        }
        let returning: BTreeSet<UserId> = users
            .iter()
            .filter(|user| {
                self.members
                    .get(user)
                    .is_some_and(|member| member.had_joined_as_of(accepted.offset))
            })
            .cloned()
            .collect();
        self.require_sessions(&returning)?;
        let present = self.fanned_out(accepted)?;
        let members = self.head.members as usize + users.len();
        if members > self.settings.fan_out_limit as usize {
            self.head.extra.mode = Mode::Combined;
        }
        let mode = self.head.extra.mode;
        for user in &present {
            self.rows.change(user, accepted.offset, |row| {
                row.mode = mode;
                row.members = count(members);
                row.tally.keep_for(mode);
            });
        }
        for user in users {
            let mut row = self.joined(accepted, since, members);
            let sees_newest =
                |member: &Member| member.may_see_as_of(self.head.last_seq, accepted.offset, opens);
            let is_known = returning.contains(user);
            let is_visible = match self.members.get(user) {
                Some(member) if is_known => sees_newest(member),
                _ => opens,
            };
            if is_visible {
                row.newest.clone_from(&self.head.extra.newest);
            }
            if is_known {
                self.rows
                    .change(user, accepted.offset, |old| old.rejoin(row));
            } else {
                self.rows.put(user.clone(), row);
            }
        }
        Ok(())
    }

    pub(super) fn leave(
        &mut self,
        accepted: &Accepted<'_>,
        users: &BTreeSet<UserId>,
        until: Seq,
    ) -> Result<(), Stop<Sessions>> {
        if users.is_empty() {
            return Ok(());
        }
        let present = self.fanned_out(accepted)?;
        self.require_sessions(users)?;
        let members = (self.head.members as usize).saturating_sub(users.len());
        for user in present.iter().filter(|user| !users.contains(user)) {
            self.rows
                .change(user, accepted.offset, |row| row.members = count(members));
        }
        let head = &*self.head;
        for user in users {
            self.rows.change(user, accepted.offset, |row| {
                *row = row.completed(head);
                row.last_seq = until;
                row.members = count(members);
                row.left = true;
                row.tally = Tally::default();
            });
        }
        Ok(())
    }

    /// A row as of a first join, with nothing of the past in it.
    pub(super) fn joined(&self, accepted: &Accepted<'_>, since: Seq, members: usize) -> Session {
        Session {
            applied: accepted.offset,
            mode: self.head.extra.mode,
            kind: self.head.kind,
            title: self.head.title.clone(),
            last_seq: self.head.last_seq,
            newest: None,
            last_active: accepted.log_time,
            since,
            read_seq: self.head.last_seq,
            tally: Tally::default(),
            cleared_to: Seq::ZERO,
            hidden: BTreeSet::new(),
            peer_read_seq: Seq::ZERO,
            marked_unread: false,
            pinned: false,
            muted: false,
            draft: String::new(),
            members: count(members),
            left: false,
            removed_at: None,
        }
    }
}

impl Session {
    /// Takes a row as of a join into the row of an earlier membership: the user's own settings stay.
    fn rejoin(&mut self, joined: Session) {
        let old = std::mem::replace(self, joined);
        self.cleared_to = old.cleared_to;
        self.hidden = old.hidden;
        self.peer_read_seq = old.peer_read_seq;
        self.pinned = old.pinned;
        self.muted = old.muted;
        self.draft = old.draft;
        self.removed_at = old.removed_at;
    }
}
