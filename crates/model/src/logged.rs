//! An event in its place in the log.

use std::fmt::{self, Formatter};

use tidemark_event::{Event, History, Kind, LogTime, Offset, Payload, UserId};

/// A record of one partition, decoded.
///
/// Its `Debug` form is a line of a [`story`](crate::story), so that a failing log that proptest shrank can be
/// kept as a plain test.
#[derive(Clone, PartialEq, Eq)]
pub struct Logged {
    /// Its place in the partition.
    pub offset: Offset,
    /// The newest broker append time up to and including this record's.
    pub log_time: LogTime,
    /// What happened.
    pub event: Event,
}

/// User ids as a story takes them.
struct Names<'a>(&'a [UserId]);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            0 => f.write_str("NOBODY"),
            many if many > 100 => write!(f, "crowd({many})"),
            _ => f
                .debug_list()
                .entries(self.0.iter().map(UserId::as_str))
                .finish(),
        }
    }
}

impl fmt::Debug for Logged {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("\n    ")?;
        tell(&self.event, f)?;
        if let Some(millis) = self.event.occurred_at {
            write!(f, ".occurred_at({millis})")?;
        }
        if self.event.by_service {
            f.write_str(".by_service()")?;
        }
        write!(
            f,
            ".to({:?}).id({:#x}).offset({}).at({})",
            self.event.conversation.as_str(),
            self.event.id.uuid().as_u128(),
            self.offset,
            self.log_time.millis()
        )
    }
}

fn tell(event: &Event, f: &mut Formatter<'_>) -> fmt::Result {
    let actor = event.actor.as_str();
    match &event.payload {
        Payload::ConversationCreated(created) => {
            let kind = match created.kind {
                Kind::Direct => "direct",
                Kind::Group => "group",
            };
            write!(f, "{kind}({:?})", Names(&created.members))?;
            if created.members.first() != Some(&event.actor) {
                write!(f, ".by({actor:?})")?;
            }
            if !created.title.is_empty() {
                write!(f, ".titled({:?})", created.title)?;
            }
            if created.history == History::All {
                f.write_str(".with_history()")?;
            }
            Ok(())
        }
        Payload::ConversationChanged(changed) => write!(
            f,
            "changed({actor:?}, {:?}, {})",
            changed.title,
            match changed.history {
                None => "None",
                Some(History::All) => "Some(History::All)",
                Some(History::FromJoin) => "Some(History::FromJoin)",
            }
        ),
        Payload::MembersAdded(added) => {
            write!(f, "added({actor:?}, {:?})", Names(&added.members))
        }
        Payload::MembersRemoved(removed) => {
            write!(f, "removed({actor:?}, {:?})", Names(&removed.members))
        }
        Payload::MessageSent(sent) => {
            write!(f, "sent({actor:?}).saying({:?})", sent.body)?;
            if sent.content_type != "text" {
                write!(f, ".content_type({:?})", sent.content_type)?;
            }
            if !sent.mentions.is_empty() {
                write!(f, ".mentioning({:?})", Names(&sent.mentions))?;
            }
            if sent.mention_all {
                f.write_str(".mentioning_all()")?;
            }
            if sent.silent {
                f.write_str(".silent()")?;
            }
            match sent.reply_to {
                Some(seq) => write!(f, ".replying_to({seq})"),
                None => Ok(()),
            }
        }
        Payload::MessageEdited(edited) => {
            write!(f, "edited({}, {:?}).by({actor:?})", edited.seq, edited.body)?;
            match &edited.mentions {
                Some(mentions) => write!(f, ".mentioning({:?})", Names(mentions)),
                None => Ok(()),
            }
        }
        Payload::MessageRecalled(recalled) => {
            write!(f, "recalled({}).by({actor:?})", recalled.seq)
        }
        Payload::MessageHidden(hidden) => write!(f, "hidden({actor:?}, {})", hidden.seq),
        Payload::ReadAdvanced(read) => write!(f, "read({actor:?}, {})", read.seq),
        Payload::MarkedUnread(marked) => {
            write!(f, "marked_unread({actor:?}, {})", marked.from_seq)
        }
        Payload::SessionChanged(changed) => write!(
            f,
            "session_changed({actor:?}, {:?}, {:?}, {:?})",
            changed.pinned, changed.muted, changed.draft
        ),
        Payload::HistoryCleared(_) => write!(f, "cleared({actor:?})"),
        Payload::SessionRemoved(_) => write!(f, "session_removed({actor:?})"),
        Payload::InboxAcked(acked) => {
            write!(
                f,
                "acked({actor:?}, {:?}, {})",
                acked.device.as_str(),
                acked.seq
            )
        }
    }
}
