//! What somebody does, told by dice.

use tidemark_event::{
    ConversationChanged, ConversationCreated, ConversationId, History, HistoryCleared, InboxAcked,
    Kind, MarkedUnread, MembersAdded, MembersRemoved, MessageEdited, MessageHidden,
    MessageRecalled, MessageSent, Payload, ReadAdvanced, SessionChanged, SessionRemoved, UserId,
};

use super::{
    What,
    scene::{Act, Dice, Place, Scene, desk, stranger},
};

impl Scene<'_> {
    pub(super) fn act(&self, what: What, conversation: &ConversationId, dice: &mut Dice) -> Act {
        let Some(place) = self.places.get(conversation) else {
            // A break is tried out in what exists.
            let too_early = what != What::Break && dice.one_in(10);
            return if too_early {
                self.send(conversation, dice)
            } else {
                self.create(conversation, dice)
            };
        };
        match what {
            What::Break => return self.break_a_rule(place, conversation, dice),
            What::CreateAgain => return create_again(place, conversation, dice),
            _ => {}
        }
        let Some(payload) = self.payload(what, place, conversation, dice) else {
            return self.send(conversation, dice);
        };
        let by_desk = what == What::Add && dice.one_in(3);
        Act {
            conversation: conversation.clone(),
            actor: if by_desk {
                desk()
            } else {
                self.somebody(conversation, dice)
            },
            by_service: by_desk || dice.one_in(16),
            occurred_at: None,
            payload,
        }
    }

    /// What is not sent; none where there is nothing yet to do it with, and for what is hardly ever accepted mostly none.
    fn payload(
        &self,
        what: What,
        place: &Place,
        conversation: &ConversationId,
        dice: &mut Dice,
    ) -> Option<Payload> {
        let is_fixed = place.created.kind == Kind::Direct && !dice.one_in(6);
        let is_empty = place.last == 0;
        Some(match what {
            What::Send | What::Repeat | What::Break | What::CreateAgain => return None,
            What::Add | What::Remove if is_fixed => return None,
            What::Edit | What::Recall | What::Hide if is_empty => return None,
            What::Add => Payload::MembersAdded(MembersAdded {
                members: self.joiners(place, dice),
            }),
            What::Remove => Payload::MembersRemoved(MembersRemoved {
                members: self.leavers(place, dice),
            }),
            What::Edit => {
                let seq = self.some_seq(conversation, dice);
                let mentions = dice.one_in(2).then(|| self.mentions(dice));
                let body = format!("edit {}", self.log.len());
                Payload::MessageEdited(MessageEdited {
                    seq,
                    body,
                    mentions,
                })
            }
            What::Recall => Payload::MessageRecalled(MessageRecalled {
                seq: self.some_seq(conversation, dice),
            }),
            What::Hide => Payload::MessageHidden(MessageHidden {
                seq: self.some_seq(conversation, dice),
            }),
            What::Read => Payload::ReadAdvanced(ReadAdvanced {
                seq: self.any_seq(conversation, dice),
            }),
            What::MarkUnread => Payload::MarkedUnread(MarkedUnread {
                from_seq: self.any_seq(conversation, dice),
            }),
            What::ChangeConversation => {
                let history = [Some(History::All), Some(History::FromJoin), None][dice.below(3)];
                let title = [None, Some("picnic"), Some("")][dice.below(3)].map(str::to_owned);
                Payload::ConversationChanged(ConversationChanged { title, history })
            }
            What::ChangeSession => {
                let pinned = [Some(true), None, Some(false)][dice.below(3)];
                let muted = [Some(true), None, Some(false)][dice.below(3)];
                let draft = [None, Some("dear"), Some("")][dice.below(3)].map(str::to_owned);
                Payload::SessionChanged(SessionChanged {
                    pinned,
                    muted,
                    draft,
                })
            }
            What::Clear => Payload::HistoryCleared(HistoryCleared {}),
            What::RemoveSession => Payload::SessionRemoved(SessionRemoved {}),
            What::Ack => {
                let device = dice.one_of(&self.cast.devices()).cloned()?;
                Payload::InboxAcked(InboxAcked {
                    seq: self.any_seq(conversation, dice),
                    device,
                })
            }
        })
    }

    pub(super) fn create(&self, conversation: &ConversationId, dice: &mut Dice) -> Act {
        let mut users = self.everybody.clone();
        let first = dice.below(users.len());
        users.rotate_left(first);
        // Every third is a direct chat, so that a log about one conversation is about a group.
        let nth = self
            .cast
            .conversations()
            .iter()
            .position(|other| other == conversation);
        let kind = if nth.is_some_and(|nth| nth % 3 == 2) {
            Kind::Direct
        } else {
            Kind::Group
        };
        users.truncate(match kind {
            Kind::Direct => 2,
            Kind::Group => 2 + dice.below(4),
        });
        let by_service = dice.one_in(8);
        let history = if dice.one_in(2) {
            History::All
        } else {
            History::FromJoin
        };
        let title = if dice.one_in(2) { "a walk" } else { "" }.to_owned();
        let actor = if by_service {
            desk()
        } else {
            users.first().cloned().unwrap_or_else(desk)
        };
        let created = ConversationCreated {
            kind,
            members: users,
            title,
            history,
        };
        Act {
            conversation: conversation.clone(),
            actor,
            by_service,
            occurred_at: None,
            payload: Payload::ConversationCreated(created),
        }
    }

    pub(super) fn send(&self, conversation: &ConversationId, dice: &mut Dice) -> Act {
        let by_service = dice.one_in(10);
        let itself = by_service && dice.one_in(2);
        let actor = if itself {
            desk()
        } else {
            self.somebody(conversation, dice)
        };
        let mentions = if dice.one_in(3) {
            self.mentions(dice)
        } else {
            Vec::new()
        };
        let mention_all = dice.one_in(8);
        let body = match dice.below(32) {
            31 => String::new(),
            // More characters than a preview has; more bytes than a session row carries.
            30 => "a preview is shorter than this ☕ ".repeat(4),
            29 => "a session row has not so much room ☕ ".repeat(30),
            _ => format!("message {}", self.log.len()),
        };
        let silent = dice.one_in(8);
        let is_system = by_service && dice.one_in(2);
        let content_type = if is_system { "system" } else { "text" }.to_owned();
        let answers = dice.one_in(8) && self.last(conversation) > 0;
        let reply_to = answers.then(|| self.some_seq(conversation, dice));
        let sent = MessageSent {
            body,
            content_type,
            mentions,
            mention_all,
            silent,
            reply_to,
        };
        Act {
            conversation: conversation.clone(),
            actor,
            by_service,
            occurred_at: dice
                .one_in(4)
                .then(|| self.clock + [-3_600_000, 0, 3_600_000][dice.below(3)]),
            payload: Payload::MessageSent(sent),
        }
    }

    /// Members, non-members, the sender perhaps, and now and then somebody twice.
    fn mentions(&self, dice: &mut Dice) -> Vec<UserId> {
        let anybody = [&self.everybody[..], &[stranger()]].concat();
        let mut mentions = dice.some_of(&anybody);
        if dice.one_in(8) {
            mentions.extend(mentions.first().cloned());
        }
        mentions
    }

    /// Mostly one who is no member, sometimes any of all.
    fn joiners(&self, place: &Place, dice: &mut Dice) -> Vec<UserId> {
        let outside = |user: &&UserId| !place.members.contains(*user);
        let outsiders = self
            .everybody
            .iter()
            .filter(outside)
            .cloned()
            .collect::<Vec<_>>();
        match dice.below(4) {
            3 => dice.some_of(&self.everybody),
            2 => dice.some_of(&outsiders),
            _ => dice.one_of(&outsiders).into_iter().cloned().collect(),
        }
    }

    /// Mostly one member, sometimes any of all.
    fn leavers(&self, place: &Place, dice: &mut Dice) -> Vec<UserId> {
        let members = place.members.iter().cloned().collect::<Vec<_>>();
        match dice.below(4) {
            3 => dice.some_of(&self.everybody),
            2 => dice.some_of(&members),
            _ => dice.one_of(&members).into_iter().cloned().collect(),
        }
    }
}

/// What created it again: by a member then, in another order, and somebody named twice.
fn create_again(place: &Place, conversation: &ConversationId, dice: &mut Dice) -> Act {
    let mut created = place.created.clone();
    let actor = dice.one_of(&created.members).cloned().unwrap_or_else(desk);
    if dice.one_in(2) {
        created.members.reverse();
        created.members.extend(created.members.first().cloned());
    }
    let by_service = dice.one_in(4);
    Act {
        conversation: conversation.clone(),
        actor,
        by_service,
        occurred_at: None,
        payload: Payload::ConversationCreated(created),
    }
}
