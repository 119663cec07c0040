//! Messages sent, edited and taken back: the rows whose newest message or numbers they change.

use std::collections::BTreeSet;

use tidemark_event::{Kind, MessageEdited, MessageSent, Seq, UserId};

use super::{Mode, Newest, Session, Sessions, Tally};
use crate::{Accepted, Message, Scene, Stop, judge::SYSTEM, message::as_set};

impl Scene<'_, Sessions> {
    pub(super) fn send(
        &mut self,
        accepted: &Accepted<'_>,
        seq: Seq,
        sent: &MessageSent,
    ) -> Result<(), Stop<Sessions>> {
        let actor = &accepted.event.actor;
        let mentions = as_set(&sent.mentions);
        let concerned = match self.head.extra.mode {
            Mode::FannedOut => self.fanned_out(accepted)?,
            Mode::Combined => self.present_of(accepted, mentions.iter().chain([actor]))?,
        };
        self.require_sessions(&concerned)?;
        let counts = !sent.silent && sent.content_type != SYSTEM;
        let newest = Newest::of(Message::sent(accepted, seq, sent));
        let mode = self.head.extra.mode;
        let is_direct = self.head.kind == Kind::Direct;
        let actor_is_member = concerned.contains(actor);
        for user in &concerned {
            let is_mentioned = mentions.binary_search(user).is_ok();
            self.rows.change(user, accepted.offset, |row| {
                if mode == Mode::FannedOut {
                    row.last_seq = seq;
                    row.last_active = accepted.log_time;
                    row.newest = Some(newest.clone());
                }
                if user == actor {
                    row.read_seq = seq;
                    row.marked_unread = false;
                    row.tally = Tally::default();
                } else if counts {
                    row.tally.add(seq, is_mentioned, sent.mention_all);
                    row.tally.keep_for(mode);
                }
                if is_direct && actor_is_member && user != actor {
                    row.peer_read_seq = seq;
                }
            });
        }
        self.begin_block(seq);
        let extra = &mut self.head.extra;
        extra
            .block
            .append(accepted.offset, actor, counts, sent.mention_all, &mentions);
        extra.newest = Some(newest);
        extra.last_active = accepted.log_time;
        Ok(())
    }

    pub(super) fn edit(
        &mut self,
        accepted: &Accepted<'_>,
        edited: &MessageEdited,
    ) -> Result<(), Stop<Sessions>> {
        let seq = edited.seq;
        let newest = self
            .head
            .extra
            .newest
            .as_ref()
            .filter(|newest| newest.message.seq == seq);
        let newest = newest
            .filter(|newest| !newest.message.recalled)
            .map(|newest| {
                let mut message = (*newest.message).clone();
                message.edit(edited, accepted.log_time);
                // The mentions of a message that was not whole are not here any more, unless the edit gives new ones.
                let knows_mentions = newest.is_whole || edited.mentions.is_some();
                let edited = Newest::of(message);
                Newest {
                    is_whole: edited.is_whole && knows_mentions,
                    ..edited
                }
            });
        let (gained, lost) = self.mentions_changed(accepted, edited)?;
        let mut concerned: BTreeSet<UserId> = self
            .present_of(accepted, gained.iter().chain(&lost))?
            .into_iter()
            .collect();
        self.require_sessions(&concerned)?;
        if newest.is_some() {
            concerned.extend(self.fanned_out(accepted)?);
        }
        let mut tallies = Vec::new();
        for user in concerned {
            let Some(row) = self.rows.get(&user) else {
                continue;
            };
            let standing = self
                .block_of(seq)
                .map(|block| block.standing(seq, &user, accepted.before()));
            let is_counted = standing.is_some_and(|standing| standing.counts) && row.counts(seq);
            let tally = if is_counted && gained.contains(&user) {
                Some(row.tally.with_mention(seq))
            } else if is_counted && lost.contains(&user) {
                Some(self.tally_without_mention(&user, row, seq, accepted)?)
            } else {
                None
            };
            let is_newest = newest.is_some()
                && row
                    .newest
                    .as_ref()
                    .is_some_and(|shown| shown.message.seq == seq);
            if is_newest || tally.is_some() {
                tallies.push((user, tally));
            }
        }
        self.change_rows(accepted, newest.as_ref(), tallies);
        if let Some(mentions) = &edited.mentions {
            self.change_block(accepted, seq, |block| {
                block.mention(seq, &as_set(mentions), accepted.offset)
            });
        }
        if newest.is_some() {
            self.head.extra.newest = newest;
        }
        Ok(())
    }

    /// Who is mentioned by name after an edit and was not before, and the other way round.
    pub(super) fn mentions_changed(
        &self,
        accepted: &Accepted<'_>,
        edited: &MessageEdited,
    ) -> Result<(BTreeSet<UserId>, BTreeSet<UserId>), Stop<Sessions>> {
        let Some(mentions) = &edited.mentions else {
            return Ok((BTreeSet::new(), BTreeSet::new()));
        };
        self.require_block(edited.seq)?;
        let Some(block) = self.block_of(edited.seq) else {
            return Ok((BTreeSet::new(), BTreeSet::new()));
        };
        if block.is_recalled(edited.seq, accepted.before()) {
            return Ok((BTreeSet::new(), BTreeSet::new()));
        }
        let before = block.mentioned(edited.seq, accepted.before());
        let after: BTreeSet<UserId> = mentions.iter().cloned().collect();
        Ok((
            after.difference(&before).cloned().collect(),
            before.difference(&after).cloned().collect(),
        ))
    }

    pub(super) fn recall(
        &mut self,
        accepted: &Accepted<'_>,
        seq: Seq,
    ) -> Result<(), Stop<Sessions>> {
        self.require_block(seq)?;
        let known = accepted.before();
        if self
            .block_of(seq)
            .is_some_and(|block| block.is_recalled(seq, known))
        {
            return Ok(());
        }
        let mentioned = self
            .block_of(seq)
            .map(|block| block.mentioned(seq, known))
            .unwrap_or_default();
        let concerned = match self.head.extra.mode {
            Mode::FannedOut => self.fanned_out(accepted)?,
            Mode::Combined => self.present_of(accepted, &mentioned)?,
        };
        self.require_sessions(&concerned)?;
        let newest = self
            .head
            .extra
            .newest
            .as_ref()
            .filter(|newest| newest.message.seq == seq);
        let newest = newest.map(|newest| {
            let mut message = (*newest.message).clone();
            message.recall();
            Newest {
                message: message.into(),
                is_whole: newest.is_whole,
            }
        });
        let mut tallies = Vec::new();
        for user in &concerned {
            let Some(row) = self.rows.get(user) else {
                continue;
            };
            let standing = self
                .block_of(seq)
                .map(|block| block.standing(seq, user, known));
            let is_counted = standing.is_some_and(|standing| standing.counts) && row.counts(seq);
            let is_newest = row
                .newest
                .as_ref()
                .is_some_and(|newest| newest.message.seq == seq);
            if is_counted || is_newest {
                let tally = if is_counted {
                    Some(self.tally_without(user, row, seq, accepted)?)
                } else {
                    None
                };
                tallies.push((user.clone(), tally));
            }
        }
        self.change_rows(accepted, newest.as_ref(), tallies);
        self.change_block(accepted, seq, |block| block.recall(seq, accepted.offset));
        if newest.is_some() {
            self.head.extra.newest = newest;
        }
        Ok(())
    }

    pub(super) fn change_rows(
        &mut self,
        accepted: &Accepted<'_>,
        newest: Option<&Newest>,
        tallies: Vec<(UserId, Option<Tally>)>,
    ) {
        let mode = self.head.extra.mode;
        for (user, tally) in tallies {
            self.rows.change(&user, accepted.offset, |row| {
                if let Some(newest) = newest.filter(|_| mode == Mode::FannedOut) {
                    row.show_anew(newest);
                }
                if let Some(tally) = tally {
                    row.tally = tally;
                }
            });
        }
    }
}

impl Session {
    fn show_anew(&mut self, newest: &Newest) {
        if self
            .newest
            .as_ref()
            .is_some_and(|shown| shown.message.seq == newest.message.seq)
        {
            self.newest = Some(newest.clone());
        }
    }
}
