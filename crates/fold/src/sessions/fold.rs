//! Folds one accepted event into the session rows it concerns.
//!
//! Each arm first asks for every row and block it will look at, then changes them: a stop leaves the scene as it was.

use std::collections::BTreeSet;

use tidemark_event::{Event, Kind, Payload, Seq, UserId};

use super::{Block, BlockNo, Mode, Session, Sessions, SessionsExtra};
use crate::{Accepted, Effect, GenerationSettings, Head, Need, Needs, Scene, Stop, View, ViewName};

impl View for Sessions {
    const NAME: ViewName = ViewName::Sessions;
    type Extra = SessionsExtra;
    type RowKey = UserId;
    type Row = Session;
    type PieceKey = BlockNo;
    type Piece = Block;

    fn begin(accepted: &Accepted<'_>) -> SessionsExtra {
        SessionsExtra {
            mode: Mode::FannedOut,
            block: Block::beginning_at(Seq::FIRST, 1, accepted.offset),
            newest: None,
            last_active: accepted.log_time,
        }
    }

    fn apply(accepted: &Accepted<'_>, scene: &mut Scene<'_, Self>) -> Result<(), Stop<Self>> {
        match &accepted.effect {
            Effect::Created(_, users) => scene.create(accepted, users),
            Effect::Changed {
                title: Some(title), ..
            } => scene.rename(accepted, title),
            Effect::Joined {
                users,
                since,
                opens,
            } => scene.join(accepted, users, *since, *opens),
            Effect::Left { users, until } => scene.leave(accepted, users, *until),
            Effect::Sent { seq, message } => scene.send(accepted, *seq, message),
            Effect::Edited(edited) => scene.edit(accepted, edited),
            Effect::Recalled(seq) => scene.recall(accepted, *seq),
            Effect::Hidden(seq) => scene.hide(accepted, *seq),
            Effect::Read(seq) => scene.read(accepted, *seq),
            Effect::MarkedUnread(from) => scene.mark_unread(accepted, *from),
            Effect::Settings(changed) => scene.set(accepted, changed),
            Effect::Cleared(to) => scene.settle(accepted, |row| {
                row.cleared_to = row.cleared_to.max(*to);
                row.hidden = row.hidden.split_off(&row.cleared_to.next());
            }),
            Effect::Removed(at) => scene.settle(accepted, |row| row.removed_at = Some(*at)),
            Effect::Nothing | Effect::Changed { title: None, .. } | Effect::Acked { .. } => Ok(()),
        }
    }

    fn foresee(
        event: &Event,
        head: &Head<SessionsExtra>,
        settings: &GenerationSettings,
    ) -> Needs<Self> {
        let mut needs = Needs::<Self>::new();
        let is_fanned_out = head.extra.mode == Mode::FannedOut;
        let concerns_all = match &event.payload {
            Payload::MessageSent(sent) => {
                if !is_fanned_out {
                    needs.extend(sent.mentions.iter().cloned().map(Need::Member));
                    needs.insert(Need::Row(event.actor.clone()));
                }
                is_fanned_out
            }
            Payload::MembersAdded(_)
            | Payload::MembersRemoved(_)
            | Payload::MessageRecalled(_)
            | Payload::ConversationChanged(_) => is_fanned_out,
            Payload::MessageEdited(edited) => is_fanned_out && edited.seq == head.last_seq,
            Payload::ReadAdvanced(_) | Payload::HistoryCleared(_) | Payload::SessionRemoved(_) => {
                needs.insert(Need::Row(event.actor.clone()));
                head.kind == Kind::Direct
            }
            Payload::MarkedUnread(_) | Payload::SessionChanged(_) | Payload::MessageHidden(_) => {
                needs.insert(Need::Row(event.actor.clone()));
                false
            }
            Payload::ConversationCreated(_) | Payload::InboxAcked(_) => false,
        };
        if concerns_all {
            needs.insert(Need::AllMembers);
        }
        if let Payload::MessageRecalled(recalled) = &event.payload {
            let block = BlockNo::of(recalled.seq, settings.block_seqs);
            if block < head.extra.block.no {
                needs.insert(Need::Piece(block));
            }
        }
        needs
    }

    fn keeps_in_memory(_: &UserId) -> bool {
        true
    }

    fn weight(row: &Session) -> usize {
        400 + row.title.len()
            + row.draft.len()
            + row.hidden.len() * 16
            + row.tally.mentions.len() * 8
    }
}

impl Scene<'_, Sessions> {
    /// Everybody whose row a message brings up to date, rows loaded: nobody above the fan-out limit.
    pub(super) fn fanned_out(
        &self,
        accepted: &Accepted<'_>,
    ) -> Result<Vec<UserId>, Stop<Sessions>> {
        match self.head.extra.mode {
            Mode::FannedOut => {
                let present = self.present_as_of(accepted.offset)?;
                self.require_sessions(&present)?;
                Ok(present)
            }
            Mode::Combined => Ok(Vec::new()),
        }
    }

    /// Those of `users` who are members just before the event, each once.
    pub(super) fn present_of<'u>(
        &self,
        accepted: &Accepted<'_>,
        users: impl IntoIterator<Item = &'u UserId>,
    ) -> Result<Vec<UserId>, Stop<Sessions>> {
        let users: BTreeSet<&UserId> = users.into_iter().collect();
        let missing: Needs<Sessions> = users
            .iter()
            .filter(|user| !self.members.knows(user))
            .map(|user| Need::Member((*user).clone()))
            .collect();
        if !missing.is_empty() {
            return Err(Stop::Needs(missing));
        }
        let is_present = |user: &UserId| {
            self.members
                .get(user)
                .is_some_and(|member| member.is_present_as_of(accepted.offset))
        };
        Ok(users
            .into_iter()
            .filter(|user| is_present(user))
            .cloned()
            .collect())
    }

    pub(super) fn require_sessions<'u>(
        &self,
        users: impl IntoIterator<Item = &'u UserId> + Clone,
    ) -> Result<(), Stop<Sessions>> {
        self.require_rows(users.clone().into_iter().cloned())?;
        match users.into_iter().find(|user| self.rows.get(user).is_none()) {
            Some(user) => Err(Stop::Damaged {
                what: format!("the session row of {user}"),
            }),
            None => Ok(()),
        }
    }
}

pub(super) fn count(members: usize) -> u32 {
    u32::try_from(members).unwrap_or(u32::MAX)
}
