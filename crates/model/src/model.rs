//! The whole of a partition: every record's verdict, and what follows from the accepted ones.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_event::{ConversationId, DeviceId, Offset, Seq, UserId};

use crate::{
    Logged, Mention, Message, Session,
    judge::{Verdict, judge},
    past::{Accepted, Past},
};

/// The settings that an answer may depend on. The fan-out limit is none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// An accepted id counts while it is younger than this, in milliseconds of log time.
    pub dedupe_window_millis: i64,
    /// An accepted id counts while it is among this many newest of its conversation.
    pub dedupe_max_ids: usize,
    /// Conversations that never had more members than this copy their messages into inboxes.
    pub copy_limit: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dedupe_window_millis: 24 * 60 * 60 * 1_000,
            dedupe_max_ids: 100_000,
            copy_limit: 20,
        }
    }
}

/// What every view must show after a log. What it shows after a prefix is [`Model::of`] the prefix.
///
/// Costs: making one is quadratic in the log's length, and so is a question about one user and conversation.
#[derive(Debug, Clone)]
pub struct Model {
    settings: Settings,
    verdicts: BTreeMap<Offset, Verdict>,
    accepted: BTreeMap<ConversationId, Vec<Accepted>>,
}

impl Model {
    /// The model of one partition's log, in order of offset.
    pub fn of(log: &[Logged], settings: &Settings) -> Self {
        let mut verdicts = BTreeMap::new();
        let mut accepted = BTreeMap::<ConversationId, Vec<Accepted>>::new();
        for logged in log {
            let past = accepted
                .get(&logged.event.conversation)
                .map_or(&[][..], Vec::as_slice);
            let verdict = judge(Past(past), logged, settings);
            verdicts.insert(logged.offset, verdict);
            if let Verdict::Accepted { seq } = verdict {
                let conversation = logged.event.conversation.clone();
                let accepted = accepted.entry(conversation).or_default();
                accepted.push(Accepted {
                    logged: logged.clone(),
                    seq,
                });
            }
        }
        Self {
            settings: settings.clone(),
            verdicts,
            accepted,
        }
    }

    fn past(&self, conversation: &ConversationId) -> Past<'_> {
        Past(self.accepted.get(conversation).map_or(&[], Vec::as_slice))
    }

    /// What became of the record at this offset; none where the log has none there.
    pub fn verdict(&self, offset: Offset) -> Option<Verdict> {
        self.verdicts.get(&offset).copied()
    }

    /// Every record's verdict, in order of offset.
    pub fn verdicts(&self) -> impl Iterator<Item = (Offset, Verdict)> {
        self.verdicts
            .iter()
            .map(|(offset, verdict)| (*offset, *verdict))
    }

    /// The conversations that exist, ascending.
    pub fn conversations(&self) -> impl Iterator<Item = &ConversationId> {
        self.accepted.keys()
    }

    /// Whether the conversation was ever created.
    pub fn exists(&self, conversation: &ConversationId) -> bool {
        self.past(conversation).created().is_some()
    }

    /// The conversation's last seq; 0 before its first message.
    pub fn last_seq(&self, conversation: &ConversationId) -> Seq {
        self.past(conversation).last()
    }

    /// A message as it is now, whoever asks.
    pub fn message(&self, conversation: &ConversationId, seq: Seq) -> Option<Message> {
        self.messages(conversation)
            .into_iter()
            .find(|message| message.seq == seq)
    }

    /// Every message of the conversation as it is now, ascending.
    pub fn messages(&self, conversation: &ConversationId) -> Vec<Message> {
        self.past(conversation).messages()
    }

    /// The present members, each with the first seq of the present membership.
    pub fn members(&self, conversation: &ConversationId) -> BTreeMap<UserId, Seq> {
        let past = self.past(conversation);
        let since = |user: UserId| Some((user.clone(), past.member_since(&user)?));
        past.ever_members().into_iter().filter_map(since).collect()
    }

    /// Whoever has ever been a member: those who have a session.
    pub fn ever_members(&self, conversation: &ConversationId) -> BTreeSet<UserId> {
        self.past(conversation).ever_members()
    }

    /// The seqs that the user may see in the permanent record, ascending.
    pub fn history_visible(&self, user: &UserId, conversation: &ConversationId) -> Vec<Seq> {
        self.past(conversation).visible(user)
    }

    /// The seqs of the user's inbox, whatever their devices have stored, ascending. Nothing expires.
    pub fn inbox(&self, user: &UserId, conversation: &ConversationId) -> Vec<Seq> {
        self.past(conversation).inbox(user)
    }

    /// The seqs of the user's inbox that this device has not stored, ascending.
    pub fn pending(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        device: &DeviceId,
    ) -> Vec<Seq> {
        self.past(conversation).pending(user, device)
    }

    /// The seqs that were copied into the user's inbox when they were sent, ascending. Clearing and hiding take
    /// none out of this list: what still shows of it is what [`Model::inbox`] has too.
    pub fn copied(&self, user: &UserId, conversation: &ConversationId) -> Vec<Seq> {
        self.past(conversation)
            .copied(user, self.settings.copy_limit)
    }

    /// The last seq at which the conversation passed the copy limit; none while it has not.
    pub fn copied_to(&self, conversation: &ConversationId) -> Option<Seq> {
        self.past(conversation).copied_to(self.settings.copy_limit)
    }

    /// The user's session; none where they never were a member.
    pub fn session(&self, user: &UserId, conversation: &ConversationId) -> Option<Session> {
        self.past(conversation).session(user)
    }

    /// The user's list: what is listed, pinned first, then newest activity, then id ascending.
    pub fn sessions(&self, user: &UserId) -> Vec<Session> {
        let sessions = self
            .conversations()
            .filter_map(|conversation| self.session(user, conversation));
        let mut listed = sessions
            .filter(|session| session.listed)
            .collect::<Vec<_>>();
        // Stable, so that conversations that are equal here stay in the order of their ids.
        listed.sort_by(|one, other| {
            let (one, other) = (
                (one.pinned, one.last_active_at),
                (other.pinned, other.last_active_at),
            );
            other.cmp(&one)
        });
        listed
    }

    /// The sum of unread over the user's listed sessions that are not muted.
    pub fn total_unread(&self, user: &UserId) -> u64 {
        let sessions = self.sessions(user);
        sessions
            .iter()
            .filter(|session| !session.muted)
            .map(|session| session.unread)
            .sum()
    }

    /// The unread messages that mention the user by name in listed sessions, muted or not, newest first.
    pub fn mentions(&self, user: &UserId) -> Vec<Mention> {
        let mut mentions = Vec::new();
        for Session {
            conversation,
            unread_mentions,
            ..
        } in self.sessions(user)
        {
            for Accepted { logged, seq } in self.past(&conversation).0 {
                if let Some(seq) = seq.filter(|seq| unread_mentions.contains(seq)) {
                    let (conversation, logged_at) = (conversation.clone(), logged.log_time);
                    mentions.push((
                        logged.offset,
                        Mention {
                            conversation,
                            seq,
                            logged_at,
                        },
                    ));
                }
            }
        }
        mentions.sort_by_key(|(offset, _)| *offset);
        mentions
            .into_iter()
            .rev()
            .map(|(_, mention)| mention)
            .collect()
    }
}
