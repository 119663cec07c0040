//! Whether a caller may do what they ask, by what the roaming view holds. No I/O.
//!
//! The rules are the folds' own, checked in the same order, and two more that only the gateway can judge: an edit is
//! the sender's, a recall the sender's or a service's. A fold judges every event again at its own place in the log: so
//! what is allowed here may still be refused there, where something came in between.

use std::collections::BTreeSet;

use tidemark_event::{ConversationCreated, ConversationId, Kind, Payload, Seq, UserId};
use tidemark_fold::{Head, Member, Message, Reason, creation_digest};

use crate::{
    problem::{Answer, Problem},
    request::Caller,
};

/// The content type that only services may send.
const SYSTEM: &str = "system";

/// A conversation and the caller's place in it, as roaming holds them.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    pub(crate) head: std::sync::Arc<Head<()>>,
    /// None where the caller never was a member.
    pub(crate) member: Option<Member>,
}

/// What an event does to whose message, where it matters whose that is.
pub(crate) fn message_of(payload: &Payload, caller: &Caller) -> Option<Seq> {
    match payload {
        Payload::MessageEdited(edited) => Some(edited.seq),
        Payload::MessageRecalled(recalled) if !caller.is_service => Some(recalled.seq),
        Payload::MessageRecalled(_)
        | Payload::ConversationCreated(_)
        | Payload::ConversationChanged(_)
        | Payload::MembersAdded(_)
        | Payload::MembersRemoved(_)
        | Payload::MessageSent(_)
        | Payload::MessageHidden(_)
        | Payload::ReadAdvanced(_)
        | Payload::MarkedUnread(_)
        | Payload::SessionChanged(_)
        | Payload::HistoryCleared(_)
        | Payload::SessionRemoved(_)
        | Payload::InboxAcked(_) => None,
    }
}

/// What a service may do without being a member: all but what is about the actor's own state.
fn needs_membership(payload: &Payload, caller: &Caller) -> bool {
    match payload {
        Payload::ConversationCreated(_)
        | Payload::ConversationChanged(_)
        | Payload::MembersAdded(_)
        | Payload::MembersRemoved(_)
        | Payload::MessageSent(_)
        | Payload::MessageEdited(_)
        | Payload::MessageRecalled(_) => !caller.is_service,
        Payload::MessageHidden(_)
        | Payload::ReadAdvanced(_)
        | Payload::MarkedUnread(_)
        | Payload::SessionChanged(_)
        | Payload::HistoryCleared(_)
        | Payload::SessionRemoved(_)
        | Payload::InboxAcked(_) => true,
    }
}

/// Judges who may begin a conversation with these members: that needs no view.
pub(crate) fn check_creation(created: &ConversationCreated, caller: &Caller) -> Answer<()> {
    let bad =
        |detail: &'static str| Err(Problem::refused(Reason::BadMembers, detail).about("members"));
    let members: BTreeSet<&UserId> = created.members.iter().collect();
    match created.kind {
        Kind::Direct if members.len() != 2 || created.members.len() != 2 => {
            bad("a direct chat has exactly two different members")
        }
        Kind::Group if members.is_empty() => bad("a group begins with somebody"),
        Kind::Direct | Kind::Group if !caller.is_service && !members.contains(&caller.user) => {
            bad("the caller is not among the members")
        }
        Kind::Direct | Kind::Group => Ok(()),
    }
}

/// Judges a creation by the conversation that is there, if one is.
pub(crate) fn judge_creation(
    conversation: &ConversationId,
    created: &ConversationCreated,
    head: Option<&Head<()>>,
) -> Answer<()> {
    match head {
        Some(head) if head.creation != creation_digest(created) => Err(Problem::refused(
            Reason::ExistsWithOtherContent,
            format!(
                "{conversation} was created with another kind, title, history or other members"
            ),
        )),
        Some(_) | None => Ok(()),
    }
}

/// Judges an event by a conversation that exists. `message` is the one that [`message_of`] names, where it exists.
pub(crate) fn judge(
    conversation: &ConversationId,
    payload: &Payload,
    caller: &Caller,
    room: &Room,
    message: Option<&Message>,
) -> Answer<()> {
    if room.head.kind == Kind::Direct
        && matches!(
            payload,
            Payload::MembersAdded(_) | Payload::MembersRemoved(_)
        )
    {
        return Err(Problem::refused(
            Reason::DirectIsFixed,
            format!("{conversation} is a direct chat"),
        ));
    }
    if needs_membership(payload, caller) && !room.member.as_ref().is_some_and(Member::is_present) {
        return Err(not_a_member(conversation, caller));
    }
    if let Some((field, seq)) = named_seq(payload)
        && !(Seq::FIRST..=room.head.last_seq).contains(&seq)
    {
        let detail = format!("{conversation} has no message {seq}");
        return Err(Problem::refused(Reason::NoSuchSeq, detail).about(field));
    }
    if let Payload::MessageSent(sent) = payload
        && sent.content_type == SYSTEM
        && !caller.is_service
    {
        let detail = "only a service may send content_type system";
        return Err(Problem::refused(Reason::NotAllowed, detail).about("content_type"));
    }
    if let Some(message) = message.filter(|message| message.sender != caller.user) {
        let detail = format!("message {} is not {}'s own", message.seq, caller.user);
        return Err(Problem::refused(Reason::NotAllowed, detail));
    }
    Ok(())
}

/// Who is or was a member may read, within what they may see.
pub(crate) fn may_read<'r>(
    conversation: &ConversationId,
    caller: &Caller,
    room: &'r Room,
) -> Answer<&'r Member> {
    room.member
        .as_ref()
        .ok_or_else(|| not_a_member(conversation, caller))
}

pub(crate) fn not_a_member(conversation: &ConversationId, caller: &Caller) -> Problem {
    Problem::refused(
        Reason::NotAMember,
        format!("{} is not a member of {conversation}", caller.user),
    )
}

pub(crate) fn no_such_conversation(conversation: &ConversationId) -> Problem {
    Problem::refused(
        Reason::NoSuchConversation,
        format!("there is no conversation {conversation}"),
    )
}

/// The seq that must be a message's for the event to be accepted.
fn named_seq(payload: &Payload) -> Option<(&'static str, Seq)> {
    match payload {
        Payload::MessageSent(sent) => sent.reply_to.map(|seq| ("reply_to", seq)),
        Payload::MessageEdited(edited) => Some(("seq", edited.seq)),
        Payload::MessageRecalled(recalled) => Some(("seq", recalled.seq)),
        Payload::MessageHidden(hidden) => Some(("seq", hidden.seq)),
        // Reading and acknowledging go no further than the last; marking unread from beyond it changes nothing.
        Payload::ReadAdvanced(_)
        | Payload::MarkedUnread(_)
        | Payload::InboxAcked(_)
        | Payload::ConversationCreated(_)
        | Payload::ConversationChanged(_)
        | Payload::MembersAdded(_)
        | Payload::MembersRemoved(_)
        | Payload::SessionChanged(_)
        | Payload::HistoryCleared(_)
        | Payload::SessionRemoved(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidemark_event::{
        History, HistoryCleared, MembersAdded, MessageEdited, MessageHidden, MessageRecalled,
        MessageSent, ReadAdvanced,
    };

    use super::*;
    use crate::{problem::Kind as ProblemKind, sample};

    fn anna() -> Caller {
        Caller {
            user: sample::user("anna"),
            is_service: false,
        }
    }

    fn service_as_anna() -> Caller {
        Caller {
            is_service: true,
            ..anna()
        }
    }

    /// A group of five messages.
    fn room(member: Option<Member>) -> Room {
        Room {
            head: Arc::new(sample::head(9, 5, ())),
            member,
        }
    }

    fn sent() -> MessageSent {
        MessageSent {
            body: "hi".to_owned(),
            content_type: "text".to_owned(),
            mentions: vec![],
            mention_all: false,
            silent: false,
            reply_to: None,
        }
    }

    fn edited(seq: u64) -> Payload {
        Payload::MessageEdited(MessageEdited {
            seq: sample::seq(seq),
            body: "ho".to_owned(),
            mentions: None,
        })
    }

    fn recalled(seq: u64) -> Payload {
        Payload::MessageRecalled(MessageRecalled {
            seq: sample::seq(seq),
        })
    }

    fn verdict(payload: &Payload, caller: &Caller, room: &Room, sender: &str) -> Option<Reason> {
        let g1 = sample::conversation("g1");
        let message = message_of(payload, caller).map(|seq| sample::message(seq.get(), sender));
        let judged = judge(&g1, payload, caller, room, message.as_ref());
        judged.err().map(|problem| match problem.kind() {
            ProblemKind::Refused(reason) => reason,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn a_member_may_write_and_a_stranger_and_who_left_may_not() {
        for payload in [
            Payload::MessageSent(sent()),
            Payload::HistoryCleared(HistoryCleared {}),
            Payload::ReadAdvanced(ReadAdvanced {
                seq: sample::seq(99),
            }),
        ] {
            let verdict = |member| verdict(&payload, &anna(), &room(member), "bo");
            assert_eq!(verdict(Some(sample::member())), None);
            assert_eq!(verdict(None), Some(Reason::NotAMember));
            assert_eq!(
                verdict(Some(sample::former_member(3))),
                Some(Reason::NotAMember)
            );
        }
    }

    #[test]
    fn a_service_needs_no_membership_but_for_what_is_a_users_own() {
        let verdict = |payload| verdict(&payload, &service_as_anna(), &room(None), "anna");
        assert_eq!(verdict(Payload::MessageSent(sent())), None);
        assert_eq!(verdict(edited(3)), None);
        let cleared = Payload::HistoryCleared(HistoryCleared {});
        assert_eq!(verdict(cleared), Some(Reason::NotAMember));
        let hidden = Payload::MessageHidden(MessageHidden {
            seq: sample::seq(3),
        });
        assert_eq!(verdict(hidden), Some(Reason::NotAMember));
    }

    #[test]
    fn an_edit_is_the_senders_and_a_recall_the_senders_or_a_services() {
        let room = room(Some(sample::member()));
        let verdict = |payload, caller: Caller, sender| verdict(&payload, &caller, &room, sender);
        assert_eq!(verdict(edited(3), anna(), "anna"), None);
        assert_eq!(verdict(edited(3), anna(), "bo"), Some(Reason::NotAllowed));
        assert_eq!(
            verdict(edited(3), service_as_anna(), "bo"),
            Some(Reason::NotAllowed)
        );
        assert_eq!(verdict(recalled(3), anna(), "anna"), None);
        assert_eq!(verdict(recalled(3), anna(), "bo"), Some(Reason::NotAllowed));
        assert_eq!(verdict(recalled(3), service_as_anna(), "bo"), None);
    }

    #[test]
    fn a_seq_must_be_a_messages() {
        let room = room(Some(sample::member()));
        for (seq, expected) in [
            (0, Some(Reason::NoSuchSeq)),
            (1, None),
            (5, None),
            (6, Some(Reason::NoSuchSeq)),
        ] {
            assert_eq!(
                verdict(&edited(seq), &anna(), &room, "anna"),
                expected,
                "{seq}"
            );
            let reply = Payload::MessageSent(MessageSent {
                reply_to: Some(sample::seq(seq)),
                ..sent()
            });
            assert_eq!(verdict(&reply, &anna(), &room, "anna"), expected, "{seq}");
        }
    }

    #[test]
    fn system_messages_are_a_services() {
        let room = room(Some(sample::member()));
        let system = Payload::MessageSent(MessageSent {
            content_type: "system".to_owned(),
            ..sent()
        });
        assert_eq!(
            verdict(&system, &anna(), &room, "anna"),
            Some(Reason::NotAllowed)
        );
        assert_eq!(verdict(&system, &service_as_anna(), &room, "anna"), None);
    }

    #[test]
    fn nobody_joins_a_direct_chat() {
        let mut room = room(Some(sample::member()));
        Arc::get_mut(&mut room.head).unwrap().kind = Kind::Direct;
        let added = Payload::MembersAdded(MembersAdded {
            members: vec![sample::user("bo")],
        });
        assert_eq!(
            verdict(&added, &anna(), &room, "anna"),
            Some(Reason::DirectIsFixed)
        );
        assert_eq!(
            verdict(&added, &service_as_anna(), &room, "anna"),
            Some(Reason::DirectIsFixed)
        );
    }

    fn creation(kind: Kind, members: &[&str]) -> ConversationCreated {
        ConversationCreated {
            kind,
            members: members.iter().map(|name| sample::user(name)).collect(),
            title: String::new(),
            history: History::FromJoin,
        }
    }

    #[test]
    fn a_conversation_begins_with_members_that_can_be_and_its_creator_among_them() {
        let allows = |caller: Caller, kind, members: &[&str]| {
            check_creation(&creation(kind, members), &caller).is_ok()
        };
        assert!(allows(anna(), Kind::Direct, &["anna", "bo"]));
        assert!(!allows(anna(), Kind::Direct, &["anna", "anna"]));
        assert!(!allows(anna(), Kind::Direct, &["anna", "bo", "cy"]));
        assert!(allows(anna(), Kind::Group, &["anna"]));
        assert!(!allows(anna(), Kind::Group, &["bo", "cy"]));
        assert!(allows(service_as_anna(), Kind::Group, &["bo", "cy"]));
        assert!(!allows(service_as_anna(), Kind::Group, &[]));
    }

    #[test]
    fn the_same_conversation_may_be_created_again_and_another_not() {
        let g1 = sample::conversation("g1");
        let mut head = sample::head(9, 5, ());
        head.creation = creation_digest(&creation(Kind::Group, &["anna", "bo"]));
        let judge = |created| judge_creation(&g1, &created, Some(&head)).is_ok();
        assert!(judge(creation(Kind::Group, &["bo", "anna"])));
        assert!(!judge(creation(Kind::Group, &["bo"])));
        assert!(judge_creation(&g1, &creation(Kind::Group, &["cy"]), None).is_ok());
    }
}
