//! What breaks a rule, told by dice: each reason for a refusal, most of them in more than one way.

use tidemark_event::{
    ConversationCreated, ConversationId, History, Kind, MAX_MEMBERS_PER_EVENT, MarkedUnread,
    MembersAdded, MembersRemoved, MessageEdited, MessageHidden, MessageRecalled, Payload,
    ReadAdvanced, Seq, UserId,
};

use super::scene::{Act, Dice, Place, Scene, desk, stranger};
use crate::story::{self, conversation};

impl Scene<'_> {
    pub(super) fn break_a_rule(
        &self,
        place: &Place,
        conversation: &ConversationId,
        dice: &mut Dice,
    ) -> Act {
        let breach = dice.below(12);
        let beyond = Seq::new(place.last + 1 + dice.below(2) as u64);
        let no_seq = if dice.one_in(2) { Seq::ZERO } else { beyond };
        let member = place.members.first().cloned().unwrap_or_else(desk);
        let outside = |user: &&UserId| !place.members.contains(*user);
        let outsider = self
            .everybody
            .iter()
            .find(outside)
            .cloned()
            .unwrap_or_else(stranger);
        let mut act = Act {
            actor: member,
            by_service: false,
            ..self.send(conversation, dice)
        };
        match breach {
            0 => act.actor = outsider,
            1 => {
                act.actor = outsider;
                act.by_service = true;
                act.payload = Payload::ReadAdvanced(ReadAdvanced { seq: Seq::FIRST });
            }
            2 => act.payload = Payload::MessageRecalled(MessageRecalled { seq: no_seq }),
            3 => act.payload = Payload::MessageHidden(MessageHidden { seq: no_seq }),
            4 => {
                let (body, mentions) = ("never shown".to_owned(), None);
                act.payload = Payload::MessageEdited(MessageEdited {
                    seq: no_seq,
                    body,
                    mentions,
                });
            }
            5 => {
                act.payload = Payload::MarkedUnread(MarkedUnread {
                    from_seq: Seq::ZERO,
                })
            }
            6 => {
                if let Payload::MessageSent(sent) = &mut act.payload {
                    sent.reply_to = Some(no_seq);
                }
            }
            7 => {
                if let Payload::MessageSent(sent) = &mut act.payload {
                    sent.content_type = "system".to_owned();
                }
            }
            8 => {
                let members = if dice.one_in(2) {
                    too_many()
                } else {
                    vec![outsider]
                };
                act.payload = if dice.one_in(2) {
                    Payload::MembersRemoved(MembersRemoved { members })
                } else {
                    Payload::MembersAdded(MembersAdded { members })
                };
                act.actor = stranger();
            }
            9 => act.conversation = nowhere(),
            10 => return self.create_badly(dice),
            _ => {
                act.payload = Payload::ConversationCreated(created_otherwise(&place.created, dice))
            }
        }
        act
    }

    /// A creation that is refused, where no other is tried.
    fn create_badly(&self, dice: &mut Dice) -> Act {
        let mut act = self.create(&nowhere(), dice);
        if let Payload::ConversationCreated(created) = &mut act.payload {
            match dice.below(4) {
                0 => created.members.clear(),
                1 => {
                    created.kind = Kind::Direct;
                    created.members = vec![act.actor.clone(), act.actor.clone()];
                }
                2 => {
                    act.by_service = false;
                    act.actor = stranger();
                }
                _ => created.members = too_many(),
            }
        }
        act
    }
}

/// The same creation with one thing other.
fn created_otherwise(created: &ConversationCreated, dice: &mut Dice) -> ConversationCreated {
    let mut created = created.clone();
    match dice.below(4) {
        0 => created.title.push('!'),
        1 => created.members.push(stranger()),
        2 => {
            created.history = match created.history {
                History::All => History::FromJoin,
                History::FromJoin => History::All,
            }
        }
        _ => {
            created.kind = match created.kind {
                Kind::Direct => Kind::Group,
                Kind::Group => Kind::Direct,
            }
        }
    }
    created
}

/// More members than an event may name.
fn too_many() -> Vec<UserId> {
    story::users(story::crowd(MAX_MEMBERS_PER_EVENT + 1))
}

/// A conversation that is never created soundly.
fn nowhere() -> ConversationId {
    conversation("nowhere")
}
