//! inbox: what a user's devices have yet to store.
//!
//! In a conversation that never had more members than the copy limit each message is copied into each member's inbox,
//! in the period (week of log time) it was logged in; all copies of a user's period expire at one instant. A
//! conversation that has passed the limit is served from roaming. Beside the copies each (user, conversation) has a
//! [`Place`]: what the member may see, and how far each device has stored. A message costs no place a write.
//!
//! A copy that is looked for and not there has expired. When that happens is the store's clock's business, so it
//! decides nothing here but whether the copy is still to be changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidemark_event::{DeviceId, Event, LogTime, Offset, Payload, Seq, UserId};

use crate::{
    Accepted, Applied, Effect, GenerationSettings, Head, Member, Message, Need, Needs, Never,
    Scene, Stop, Stored, View, ViewName,
};

/// The inbox view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inbox;

/// A period of log time, counted from 1970: a week, unless the generation says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Period(i64);

impl Period {
    /// The period that a log time falls into.
    pub fn of(log_time: LogTime, settings: &GenerationSettings) -> Self {
        Self(
            log_time
                .millis()
                .div_euclid(settings.inbox_period_millis.max(1)),
        )
    }

    /// Takes a stored number.
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// When its copies expire, in milliseconds since 1970 UTC.
    pub fn expires_at(self, settings: &GenerationSettings) -> i64 {
        (self.0.saturating_add(1))
            .saturating_mul(settings.inbox_period_millis.max(1))
            .saturating_add(settings.inbox_ttl_millis)
    }
}

/// What the inbox keeps in a conversation's head.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InboxExtra {
    /// The first seq copied in each period, oldest first; periods that have expired are left out.
    pub periods: Vec<(Period, Seq)>,
    /// Where the conversation passed the copy limit: its last seq at that moment. Later ones are not copied.
    pub copied_to: Option<Seq>,
}

impl InboxExtra {
    /// The period that `seq` was copied in, unless it was not copied or has expired.
    fn period_of(&self, seq: Seq) -> Option<Period> {
        if self.copied_to.is_some_and(|to| seq > to) {
            return None;
        }
        self.periods
            .iter()
            .rev()
            .find(|(_, first)| *first <= seq)
            .map(|(period, _)| *period)
    }

    fn begin_period(
        &mut self,
        period: Period,
        seq: Seq,
        now: LogTime,
        settings: &GenerationSettings,
    ) {
        if self
            .periods
            .last()
            .is_none_or(|(newest, _)| *newest < period)
        {
            self.periods.push((period, seq));
            self.periods
                .retain(|(period, _)| period.expires_at(settings) > now.millis());
        }
    }
}

/// Names an inbox row within its conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum InboxKey {
    /// A copy of a message.
    Copy {
        /// Whose inbox it is in.
        user: UserId,
        /// The period it was logged in.
        period: Period,
        /// The message.
        seq: Seq,
    },
    /// A user's place.
    Place {
        /// The user.
        user: UserId,
    },
}

/// A row of the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InboxRow {
    /// A copy of a message.
    Copy(Stored),
    /// A user's place.
    Place(Place),
}

/// What one user may see of a conversation, and how far each of their devices has stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The newest event folded into the row.
    pub applied: Offset,
    /// What the member may see.
    pub member: Member,
    /// The newest seq stored, by device.
    pub devices: BTreeMap<DeviceId, Seq>,
    /// Where the conversation passed the copy limit, once it has.
    pub copied_to: Option<Seq>,
}

impl Applied for InboxRow {
    fn applied(&self) -> Offset {
        match self {
            Self::Copy(copy) => copy.applied,
            Self::Place(place) => place.applied,
        }
    }

    fn stamp(&mut self, offset: Offset) {
        match self {
            Self::Copy(copy) => copy.applied = offset,
            Self::Place(place) => place.applied = offset,
        }
    }
}

impl View for Inbox {
    const NAME: ViewName = ViewName::Inbox;
    type Extra = InboxExtra;
    type RowKey = InboxKey;
    type Row = InboxRow;
    type PieceKey = Never;
    type Piece = Never;

    fn begin(_: &Accepted<'_>) -> InboxExtra {
        InboxExtra::default()
    }

    fn apply(accepted: &Accepted<'_>, scene: &mut Scene<'_, Self>) -> Result<(), Stop<Self>> {
        let actor = &accepted.event.actor;
        match &accepted.effect {
            Effect::Created(_, users) => {
                scene.pass_copy_limit(accepted, users.len(), &[])?;
                for user in users {
                    let member = Member::joining(accepted.offset, Seq::FIRST, false);
                    scene.put_place(accepted, user, member);
                }
            }
            Effect::Joined {
                users,
                since,
                opens,
            } => {
                let returning: Vec<UserId> = users
                    .iter()
                    .filter(|user| {
                        scene
                            .members
                            .get(user)
                            .is_some_and(|member| member.had_joined_as_of(accepted.offset))
                    })
                    .cloned()
                    .collect();
                scene.require_places(&returning)?;
                let members = scene.head.members as usize + users.len();
                scene.pass_copy_limit(accepted, members, &returning)?;
                for user in users {
                    if returning.contains(user) {
                        scene.change_place(accepted, user, |place| {
                            place.member.join(accepted.offset, *since, *opens)
                        });
                    } else {
                        scene.put_place(
                            accepted,
                            user,
                            Member::joining(accepted.offset, *since, *opens),
                        );
                    }
                }
            }
            Effect::Left { users, until } => {
                scene.require_places(users)?;
                for user in users {
                    scene.change_place(accepted, user, |place| {
                        place.member.leave(accepted.offset, *until)
                    });
                }
            }
            Effect::Sent { seq, message } => {
                if scene.head.extra.copied_to.is_none() {
                    scene.copy(accepted, Message::sent(accepted, *seq, message))?;
                }
            }
            Effect::Edited(edited) => {
                scene.change_copies(accepted, edited.seq, |copy| {
                    copy.message.edit(edited, accepted.log_time)
                })?;
            }
            Effect::Recalled(seq) => {
                scene.change_copies(accepted, *seq, |copy| copy.message.recall())?
            }
            Effect::Hidden(seq) => {
                scene.require_places([actor])?;
                scene.change_place(accepted, actor, |place| {
                    place.member.hide(accepted.offset, *seq)
                });
            }
            Effect::Cleared(to) => {
                scene.require_places([actor])?;
                scene.change_place(accepted, actor, |place| {
                    place.member.clear(accepted.offset, *to)
                });
            }
            Effect::Acked { seq, device } => {
                scene.require_places([actor])?;
                scene.change_place(accepted, actor, |place| {
                    let stored = place.devices.entry((*device).clone()).or_default();
                    *stored = (*stored).max(*seq);
                });
            }
            Effect::Nothing
            | Effect::Changed { .. }
            | Effect::Read(_)
            | Effect::MarkedUnread(_)
            | Effect::Settings(_)
            | Effect::Removed(_) => {}
        }
        Ok(())
    }

    fn foresee(event: &Event, head: &Head<InboxExtra>, _: &GenerationSettings) -> Needs<Self> {
        let place = |user: &UserId| Need::Row(InboxKey::Place { user: user.clone() });
        match &event.payload {
            Payload::MessageSent(_) if head.extra.copied_to.is_none() => {
                Needs::<Self>::from([Need::AllMembers])
            }
            Payload::MembersAdded(_) if head.extra.copied_to.is_none() => {
                Needs::<Self>::from([Need::AllMembers])
            }
            Payload::MembersRemoved(removed) => removed.members.iter().map(place).collect(),
            Payload::MessageHidden(_) | Payload::HistoryCleared(_) | Payload::InboxAcked(_) => {
                Needs::<Self>::from([place(&event.actor)])
            }
            _ => Needs::<Self>::new(),
        }
    }

    fn keeps_in_memory(key: &InboxKey) -> bool {
        match key {
            InboxKey::Copy { .. } => false,
            InboxKey::Place { .. } => true,
        }
    }

    fn weight(row: &InboxRow) -> usize {
        match row {
            InboxRow::Copy(copy) => copy.message.weight(),
            InboxRow::Place(place) => {
                160 + place.devices.len() * 64 + place.member.hidden.len() * 16
            }
        }
    }
}

impl Scene<'_, Inbox> {
    /// Writes a message into the inbox of everybody present.
    fn copy(&mut self, accepted: &Accepted<'_>, message: Message) -> Result<(), Stop<Inbox>> {
        let present = self.present_as_of(accepted.offset)?;
        let period = Period::of(accepted.log_time, self.settings);
        self.head
            .extra
            .begin_period(period, message.seq, accepted.log_time, self.settings);
        for user in present {
            let key = InboxKey::Copy {
                user,
                period,
                seq: message.seq,
            };
            self.rows.put(
                key,
                InboxRow::Copy(Stored {
                    applied: accepted.offset,
                    message: message.clone(),
                }),
            );
        }
        Ok(())
    }

    /// Changes every copy of a message: those of all who were present when it was sent.
    fn change_copies(
        &mut self,
        accepted: &Accepted<'_>,
        seq: Seq,
        change: impl Fn(&mut Stored),
    ) -> Result<(), Stop<Inbox>> {
        let Some(period) = self.head.extra.period_of(seq) else {
            return Ok(());
        };
        if !self.members.are_complete() {
            return Err(Stop::Needs(Needs::<Inbox>::from([Need::AllMembers])));
        }
        let keys: Vec<InboxKey> = self
            .members
            .iter()
            .filter(|(_, member)| member.held_as_of(seq, accepted.offset))
            .map(|(user, _)| InboxKey::Copy {
                user: user.clone(),
                period,
                seq,
            })
            .collect();
        self.require_rows(keys.iter().cloned())?;
        for key in keys {
            #[cfg(feature = "planted-faults")]
            if crate::planted::is_planted(crate::planted::Fault::RowLaterRemoved)
                && matches!(accepted.effect, Effect::Recalled(_))
            {
                self.rows.forget_unwritten(&key);
            }
            self.rows.change(&key, accepted.offset, |row| {
                if let InboxRow::Copy(copy) = row {
                    change(copy);
                }
            });
        }
        Ok(())
    }

    /// Where the event brings the members over the copy limit, ends copying and tells every place so, but those of
    /// `returning`, which the event changes anyway.
    fn pass_copy_limit(
        &mut self,
        accepted: &Accepted<'_>,
        members: usize,
        returning: &[UserId],
    ) -> Result<(), Stop<Inbox>> {
        if self.head.extra.copied_to.is_some() || members <= self.settings.copy_limit as usize {
            return Ok(());
        }
        let present = match accepted.effect {
            Effect::Created(..) => Vec::new(),
            _ => self.present_as_of(accepted.offset)?,
        };
        self.require_places(&present)?;
        let copied_to = Some(self.head.last_seq);
        self.head.extra.copied_to = copied_to;
        for user in present.iter().filter(|user| !returning.contains(user)) {
            self.change_place(accepted, user, |_| {});
        }
        Ok(())
    }

    fn require_places<'u>(
        &self,
        users: impl IntoIterator<Item = &'u UserId> + Clone,
    ) -> Result<(), Stop<Inbox>> {
        let key = |user: &UserId| InboxKey::Place { user: user.clone() };
        self.require_rows(users.clone().into_iter().map(key))?;
        match users
            .into_iter()
            .find(|user| self.rows.get(&key(user)).is_none())
        {
            Some(user) => Err(Stop::Damaged {
                what: format!("the inbox place of {user}"),
            }),
            None => Ok(()),
        }
    }

    fn put_place(&mut self, accepted: &Accepted<'_>, user: &UserId, member: Member) {
        let place = Place {
            applied: accepted.offset,
            member,
            devices: BTreeMap::new(),
            copied_to: self.head.extra.copied_to,
        };
        self.rows.put(
            InboxKey::Place { user: user.clone() },
            InboxRow::Place(place),
        );
    }

    fn change_place(
        &mut self,
        accepted: &Accepted<'_>,
        user: &UserId,
        change: impl FnOnce(&mut Place),
    ) {
        let copied_to = self.head.extra.copied_to;
        self.rows.change(
            &InboxKey::Place { user: user.clone() },
            accepted.offset,
            |row| {
                if let InboxRow::Place(place) = row {
                    place.copied_to = copied_to;
                    change(place);
                }
            },
        );
    }
}
