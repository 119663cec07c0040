//! What was accepted in one conversation, and every question that can be asked of it.
//!
//! A [`Past`] is a list of accepted events. Each question is answered by reading it from its first event, and
//! "as of" is asked of a shorter list. Nothing is kept between questions, so nothing can have gone stale.

use std::collections::BTreeSet;

use tidemark_event::{
    ConversationCreated, DeviceId, Event, History, Kind, LogTime, Payload, Seq, UserId,
};

use crate::{Logged, Message, Session};

/// An accepted event and the seq it took.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) logged: Logged,
    pub(crate) seq: Option<Seq>,
}

/// The accepted events of one conversation up to some point, in order of offset.
#[derive(Clone, Copy)]
pub(crate) struct Past<'a>(pub(crate) &'a [Accepted]);

/// One stay in a conversation, from a join to a leaving.
struct Membership {
    /// Which accepted event was the join.
    joined_by: usize,
    /// The first seq of the stay.
    since: Seq,
    /// The history setting it was joined under.
    history: History,
    /// The leaving, where it has ended.
    ended: Option<Ended>,
}

struct Ended {
    /// Which accepted event was the leaving.
    by: usize,
    /// The last seq of the stay.
    until: Seq,
}

impl Membership {
    fn contains(&self, seq: Seq) -> bool {
        self.since <= seq && self.ended.as_ref().is_none_or(|ended| seq <= ended.until)
    }
}

/// How far somebody has read.
#[derive(Clone, Copy)]
struct Reading {
    read_seq: Seq,
    marked_unread: bool,
}

/// What somebody has set for themselves.
#[derive(Default)]
struct OwnSettings {
    pinned: bool,
    muted: bool,
    draft: String,
}

// The conversation.
impl<'a> Past<'a> {
    /// The past as it was before accepted event `index`.
    fn before(self, index: usize) -> Self {
        Self(&self.0[..index])
    }

    /// The past as it was right after accepted event `index`.
    fn through(self, index: usize) -> Self {
        Self(&self.0[..=index])
    }

    pub(crate) fn events(self) -> impl DoubleEndedIterator<Item = &'a Logged> {
        self.0.iter().map(|accepted| &accepted.logged)
    }

    pub(crate) fn created(self) -> Option<&'a ConversationCreated> {
        match &self.0.first()?.logged.event.payload {
            Payload::ConversationCreated(created) => Some(created),
            other => panic!("a conversation began with {}", other.type_name()),
        }
    }

    pub(crate) fn last(self) -> Seq {
        self.0
            .iter()
            .rev()
            .find_map(|accepted| accepted.seq)
            .unwrap_or(Seq::ZERO)
    }

    fn title(self, created: &ConversationCreated) -> String {
        let mut title = &created.title;
        for logged in self.events() {
            if let Payload::ConversationChanged(changed) = &logged.event.payload {
                title = changed.title.as_ref().unwrap_or(title);
            }
        }
        title.clone()
    }

    fn history(self) -> History {
        let mut history = self
            .created()
            .map_or(History::FromJoin, |created| created.history);
        for logged in self.events() {
            if let Payload::ConversationChanged(changed) = &logged.event.payload {
                history = changed.history.unwrap_or(history);
            }
        }
        history
    }

    /// Every message as it is now, ascending.
    pub(crate) fn messages(self) -> Vec<Message> {
        let mut messages = Vec::<Message>::new();
        for accepted in self.0 {
            let Logged {
                log_time, event, ..
            } = &accepted.logged;
            if let Some(seq) = accepted.seq {
                messages.push(new_message(seq, *log_time, event));
            }
            for message in messages.iter_mut().filter(|message| !message.recalled) {
                edit_or_recall(message, *log_time, &event.payload);
            }
        }
        messages
    }
}

fn new_message(seq: Seq, log_time: LogTime, event: &Event) -> Message {
    let Payload::MessageSent(sent) = &event.payload else {
        panic!("{} took seq {seq}", event.payload.type_name());
    };
    Message {
        seq,
        event_id: event.id,
        sender: event.actor.clone(),
        body: sent.body.clone(),
        content_type: sent.content_type.clone(),
        mentions: each_once(&sent.mentions),
        mention_all: sent.mention_all,
        silent: sent.silent,
        reply_to: sent.reply_to,
        edited_at: None,
        recalled: false,
        occurred_at: event.occurred_at,
        logged_at: log_time,
    }
}

/// Changes a message that is not recalled, where the event is about it.
fn edit_or_recall(message: &mut Message, log_time: LogTime, payload: &Payload) {
    if let Payload::MessageRecalled(recalled) = payload
        && recalled.seq == message.seq
    {
        message.body = String::new();
        message.recalled = true;
    }
    if let Payload::MessageEdited(edited) = payload
        && edited.seq == message.seq
    {
        message.body = edited.body.clone();
        message.edited_at = Some(log_time);
        if let Some(mentions) = &edited.mentions {
            message.mentions = each_once(mentions);
        }
    }
}

fn each_once(users: &[UserId]) -> Vec<UserId> {
    users
        .iter()
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

// Its members, and what they may see.
impl<'a> Past<'a> {
    /// Whoever has ever been a member.
    pub(crate) fn ever_members(self) -> BTreeSet<UserId> {
        let mut users = BTreeSet::new();
        for index in 0..self.0.len() {
            users.extend(self.joining(index).iter().cloned());
        }
        users
    }

    pub(crate) fn members(self) -> BTreeSet<UserId> {
        let mut members = self.ever_members();
        members.retain(|user| self.is_member(user));
        members
    }

    pub(crate) fn is_member(self, user: &UserId) -> bool {
        self.member_since(user).is_some()
    }

    /// The first seq of the user's present membership.
    pub(crate) fn member_since(self, user: &UserId) -> Option<Seq> {
        let latest = self.memberships(user).pop()?;
        latest.ended.is_none().then_some(latest.since)
    }

    /// Whom accepted event `index` makes members, where they are not yet. A creation does so once.
    fn joining(self, index: usize) -> &'a [UserId] {
        if let Payload::MembersAdded(added) = &self.0[index].logged.event.payload {
            return &added.members;
        }
        if index == 0 {
            self.created().map_or(&[], |created| &created.members)
        } else {
            &[]
        }
    }

    /// Whose membership accepted event `index` ends, where they have one.
    fn leaving(self, index: usize) -> &'a [UserId] {
        if let Payload::MembersRemoved(removed) = &self.0[index].logged.event.payload {
            return &removed.members;
        }
        &[]
    }

    /// The user's stays, in order.
    fn memberships(self, user: &UserId) -> Vec<Membership> {
        let mut memberships = Vec::<Membership>::new();
        for index in 0..self.0.len() {
            let before = self.before(index);
            let present = memberships
                .last_mut()
                .filter(|latest| latest.ended.is_none());
            if let Some(present) = present {
                if self.leaving(index).contains(user) {
                    present.ended = Some(Ended {
                        by: index,
                        until: before.last(),
                    });
                }
            } else if self.joining(index).contains(user) {
                memberships.push(Membership {
                    joined_by: index,
                    since: before.last().next(),
                    history: before.history(),
                    ended: None,
                });
            }
        }
        memberships
    }

    /// The seqs inside one of the user's stays.
    fn inside(self, user: &UserId) -> Vec<Seq> {
        let memberships = self.memberships(user);
        self.seqs()
            .filter(|seq| memberships.iter().any(|stay| stay.contains(*seq)))
            .collect()
    }

    /// The seqs before the user's first stay, where any join opened them.
    fn opened(self, user: &UserId) -> Vec<Seq> {
        let memberships = self.memberships(user);
        let opened = memberships.iter().any(|stay| stay.history == History::All);
        let Some(first) = memberships.first().filter(|_| opened) else {
            return Vec::new();
        };
        self.seqs().filter(|seq| *seq < first.since).collect()
    }

    /// The seqs that the user may see.
    pub(crate) fn visible(self, user: &UserId) -> Vec<Seq> {
        let mut seqs = [self.opened(user), self.inside(user)].concat();
        seqs.retain(|seq| self.kept_by(user, *seq));
        seqs
    }

    /// What the user's devices are to store.
    pub(crate) fn inbox(self, user: &UserId) -> Vec<Seq> {
        let mut seqs = self.inside(user);
        seqs.retain(|seq| self.kept_by(user, *seq));
        seqs
    }

    /// What the device has not stored yet.
    pub(crate) fn pending(self, user: &UserId, device: &DeviceId) -> Vec<Seq> {
        let mut acked = Seq::ZERO;
        for (before, payload) in self.acts(user) {
            if let Payload::InboxAcked(ack) = payload
                && ack.device == *device
            {
                acked = acked.max(ack.seq.min(before.last()));
            }
        }
        let mut seqs = self.inbox(user);
        seqs.retain(|seq| *seq > acked);
        seqs
    }

    /// The messages that were copied into the user's inbox when they were sent.
    pub(crate) fn copied(self, user: &UserId, copy_limit: usize) -> Vec<Seq> {
        let copied_to = self.copied_to(copy_limit);
        let mut seqs = self.inside(user);
        seqs.retain(|seq| copied_to.is_none_or(|copied_to| *seq <= copied_to));
        seqs
    }

    /// The last seq when the number of members first passed the copy limit.
    pub(crate) fn copied_to(self, copy_limit: usize) -> Option<Seq> {
        (0..self.0.len())
            .filter(|index| !self.joining(*index).is_empty())
            .map(|index| self.through(index))
            .find(|past| past.members().len() > copy_limit)
            .map(Past::last)
    }

    fn seqs(self) -> impl Iterator<Item = Seq> {
        self.0.iter().filter_map(|accepted| accepted.seq)
    }
}

// What one user did, and the session it made.
impl<'a> Past<'a> {
    /// What the user did, each with the past before it.
    fn acts(self, user: &UserId) -> impl Iterator<Item = (Past<'a>, &'a Payload)> {
        self.events()
            .enumerate()
            .filter(move |(_, logged)| logged.event.actor == *user)
            .map(move |(index, logged)| (self.before(index), &logged.event.payload))
    }

    /// Neither cleared nor hidden by the user.
    fn kept_by(self, user: &UserId, seq: Seq) -> bool {
        seq > self.cleared_to(user) && !self.hidden(user).contains(&seq)
    }

    fn hidden(self, user: &UserId) -> BTreeSet<Seq> {
        let hidden = |(_, payload): (Self, &Payload)| {
            let Payload::MessageHidden(hidden) = payload else {
                return None;
            };
            Some(hidden.seq)
        };
        self.acts(user).filter_map(hidden).collect()
    }

    fn cleared_to(self, user: &UserId) -> Seq {
        let cleared = |(past, payload): (Self, &Payload)| {
            matches!(payload, Payload::HistoryCleared(_)).then(|| past.last())
        };
        self.acts(user)
            .filter_map(cleared)
            .last()
            .unwrap_or(Seq::ZERO)
    }

    /// The last seq when the user took the session off their list, latest.
    fn removed_at(self, user: &UserId) -> Option<Seq> {
        let removed = |(past, payload): (Self, &Payload)| {
            matches!(payload, Payload::SessionRemoved(_)).then(|| past.last())
        };
        self.acts(user).filter_map(removed).last()
    }

    fn own_settings(self, user: &UserId) -> OwnSettings {
        let mut own = OwnSettings::default();
        for (_, payload) in self.acts(user) {
            if let Payload::SessionChanged(changed) = payload {
                own.pinned = changed.pinned.unwrap_or(own.pinned);
                own.muted = changed.muted.unwrap_or(own.muted);
                own.draft = changed.draft.clone().unwrap_or(own.draft);
            }
        }
        own
    }

    /// How far the user had read, after each accepted event from their first join on.
    fn readings(self, user: &UserId) -> Vec<Reading> {
        let memberships = self.memberships(user);
        let mut readings = Vec::<Reading>::new();
        for (index, logged) in self.events().enumerate() {
            let last = self.through(index).last();
            if memberships.iter().any(|stay| stay.joined_by == index) {
                readings.push(Reading {
                    read_seq: last,
                    marked_unread: false,
                });
            } else if let Some(reading) = readings.last() {
                let by_user = logged.event.actor == *user;
                readings.push(if by_user {
                    reading.after(&logged.event.payload, last)
                } else {
                    *reading
                });
            }
        }
        readings
    }

    /// The messages that count as unread.
    fn unread(self, user: &UserId, read_seq: Seq) -> Vec<Message> {
        let Some(since) = self.member_since(user) else {
            return Vec::new();
        };
        let mut messages = self.messages();
        messages.retain(|message| {
            message.seq >= since
                && message.seq > read_seq
                && message.sender != *user
                && !message.silent
                && message.content_type != "system"
                && !message.recalled
                && self.kept_by(user, message.seq)
        });
        messages
    }

    fn last_message(self, user: &UserId) -> Option<Message> {
        let newest = self.messages().pop()?;
        self.visible(user).contains(&newest.seq).then_some(newest)
    }

    /// The greatest read seq that the other one of a direct chat has ever had.
    fn peer_read_seq(self, user: &UserId) -> Option<Seq> {
        let created = self
            .created()
            .filter(|created| created.kind == Kind::Direct)?;
        let peer = created.members.iter().find(|member| *member != user)?;
        self.readings(peer)
            .iter()
            .map(|reading| reading.read_seq)
            .max()
    }

    /// The session as the whole past makes it; for who left, as it was when they left.
    pub(crate) fn session(self, user: &UserId) -> Option<Session> {
        let latest = self.memberships(user).pop()?;
        match latest.ended {
            None => self.session_from(user, &latest),
            Some(Ended { by, .. }) => self.through(by).session_from(user, &latest),
        }
    }

    /// The session where `latest` is the user's latest stay, present or ended by the newest event.
    fn session_from(self, user: &UserId, latest: &Membership) -> Option<Session> {
        let created = self.created()?;
        let reading = *self.readings(user).last()?;
        let unread = self.unread(user, reading.read_seq);
        let own = self.own_settings(user);

        let by_name = unread
            .iter()
            .filter(|message| message.mentions.contains(user));
        let to_all = unread.iter().filter(|message| message.mention_all);
        let since_joined = self
            .messages()
            .into_iter()
            .filter(|message| message.seq >= latest.since);
        Some(Session {
            conversation: self.0.first()?.logged.event.conversation.clone(),
            kind: created.kind,
            title: self.title(created),
            members: self.members().len(),
            last_seq: self.last(),
            last_message: self.last_message(user),
            last_active_at: since_joined
                .last()
                .map_or(self.0[latest.joined_by].logged.log_time, |newest| {
                    newest.logged_at
                }),
            read_seq: reading.read_seq,
            unread: unread.len() as u64,
            unread_mentions: by_name.map(|message| message.seq).collect(),
            mentioned_all: to_all.map(|message| message.seq).max(),
            cleared_to: self.cleared_to(user),
            peer_read_seq: self.peer_read_seq(user),
            marked_unread: reading.marked_unread,
            pinned: own.pinned,
            muted: own.muted,
            draft: own.draft,
            left: latest.ended.is_some(),
            listed: self
                .removed_at(user)
                .is_none_or(|removed_at| self.last() > removed_at),
        })
    }
}

impl Reading {
    /// The reading after its user did something accepted. `last` is the last seq with that event counted.
    fn after(self, payload: &Payload, last: Seq) -> Self {
        let read_seq = match payload {
            Payload::ReadAdvanced(read) => self.read_seq.max(read.seq.min(last)),
            Payload::MessageSent(_) | Payload::HistoryCleared(_) | Payload::SessionRemoved(_) => {
                last
            }
            Payload::MarkedUnread(marked) if marked.from_seq <= self.read_seq => {
                return Self {
                    read_seq: marked.from_seq.previous(),
                    marked_unread: true,
                };
            }
            Payload::MarkedUnread(_)
            | Payload::ConversationCreated(_)
            | Payload::ConversationChanged(_)
            | Payload::MembersAdded(_)
            | Payload::MembersRemoved(_)
            | Payload::MessageEdited(_)
            | Payload::MessageRecalled(_)
            | Payload::MessageHidden(_)
            | Payload::SessionChanged(_)
            | Payload::InboxAcked(_) => return self,
        };
        Self {
            read_seq,
            marked_unread: self.marked_unread && read_seq < last,
        }
    }
}
