//! `sessions_<generation>_sessions`: a user's sessions.
//!
//! Every number and text that a person or an auditor looks at has a column; what only a reader of the view unpacks,
//! the newest message and the hidden seqs, are blobs.

use std::collections::BTreeMap;

use futures::stream::BoxStream;
use scylla::{DeserializeRow, SerializeRow, value::CqlTimestamp};
use tidemark_event::{ConversationId, Partition, Seq, UserId};
use tidemark_fold::sessions::{Mode, Session, Tally};

use crate::{
    TokenRange,
    column::{self, BadColumn, Blob},
    error::StoreError,
    link::{Job, Link, Readable, Statement},
    schema::Names,
    timestamp::WriteTimestamp,
    write::{Writable, Written, write_jobs},
};

const INSERT: &str = "INSERT INTO {table} (user_id, log_partition, conversation_id, applied, mode, kind, title, \
    last_seq, last_active, since, read_seq, unread, mention_count, mentions, mentioned_all, cleared_to, \
    peer_read_seq, marked_unread, pinned, muted, draft, members, left, removed_at, newest, hidden) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
const SELECT_SOME: &str = "SELECT user_id, log_partition, conversation_id, applied, mode, kind, title, last_seq, \
    last_active, since, read_seq, unread, mention_count, mentions, mentioned_all, cleared_to, peer_read_seq, \
    marked_unread, pinned, muted, draft, members, left, removed_at, newest, hidden FROM {table} \
    WHERE user_id = ? AND log_partition = ? AND conversation_id IN ?";
const SELECT_ALL: &str = "SELECT user_id, log_partition, conversation_id, applied, mode, kind, title, last_seq, \
    last_active, since, read_seq, unread, mention_count, mentions, mentioned_all, cleared_to, peer_read_seq, \
    marked_unread, pinned, muted, draft, members, left, removed_at, newest, hidden FROM {table} \
    WHERE user_id = ?";
const SCAN: &str = "SELECT user_id, log_partition, conversation_id, applied, mode, kind, title, last_seq, \
    last_active, since, read_seq, unread, mention_count, mentions, mentioned_all, cleared_to, peer_read_seq, \
    marked_unread, pinned, muted, draft, members, left, removed_at, newest, hidden FROM {table} \
    WHERE token(user_id) > ? AND token(user_id) <= ?";

/// The statements of one generation's sessions.
#[derive(Debug)]
pub(super) struct SessionRows {
    insert: Statement,
    select_some: Statement,
    select_all: Statement,
    scan: Statement,
}

/// A session, whose it is and of which conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOf {
    /// The user.
    pub user: UserId,
    /// The partition of the log that the conversation is in.
    pub partition: Partition,
    /// The conversation.
    pub conversation: ConversationId,
    /// The session.
    pub session: Session,
}

impl SessionRows {
    pub(super) async fn prepare(link: &Link, names: &Names) -> Result<Self, StoreError> {
        let table = names.table("sessions");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select_some: link.prepare(&table, SELECT_SOME).await?,
            select_all: link.prepare(&table, SELECT_ALL).await?,
            scan: link.prepare(&table, SCAN).await?,
        })
    }

    pub(super) fn writes<'a>(
        &'a self,
        link: &'a Link,
        partition: Partition,
        sessions: impl IntoIterator<Item = (&'a UserId, &'a ConversationId, &'a Session)>,
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let mut rows = Vec::new();
        for (user, conversation, session) in sessions {
            let row = SessionRow::of(user, partition, conversation, session).map_err(|bad| {
                let key = format!("{user}, {conversation}");
                StoreError::unwritable(self.insert.table(), key, bad)
            })?;
            rows.push(SessionInsert {
                timestamp: WriteTimestamp::applied(session.applied),
                row,
            });
        }
        Ok(write_jobs(link, &self.insert, rows))
    }

    /// Those of a user's sessions in `conversations`, all of one partition of the log, that are there.
    pub(super) async fn read_some(
        &self,
        link: &Link,
        user: &UserId,
        partition: Partition,
        conversations: &[ConversationId],
    ) -> Result<BTreeMap<ConversationId, Session>, StoreError> {
        let names: Vec<&str> = conversations.iter().map(ConversationId::as_str).collect();
        let values = (user.as_str(), partition.get(), names);
        let rows: Vec<SessionOf> = link.all(&self.select_some, &values, user.as_str()).await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.conversation, row.session))
            .collect())
    }

    pub(super) async fn read_all(
        &self,
        link: &Link,
        user: &UserId,
    ) -> Result<Vec<SessionOf>, StoreError> {
        link.all(&self.select_all, &(user.as_str(),), user.as_str())
            .await
    }

    pub(super) fn scan<'a>(
        &'a self,
        link: &'a Link,
        range: TokenRange,
    ) -> BoxStream<'a, Result<SessionOf, StoreError>> {
        link.scan(&self.scan, range.bounds(), range.to_string())
    }
}

#[derive(Debug, SerializeRow, DeserializeRow)]
pub(crate) struct SessionRow<'r> {
    user_id: &'r str,
    log_partition: i32,
    conversation_id: &'r str,
    applied: i64,
    mode: &'r str,
    kind: &'r str,
    title: &'r str,
    last_seq: i64,
    last_active: CqlTimestamp,
    since: i64,
    read_seq: i64,
    unread: i64,
    mention_count: i64,
    mentions: Vec<i64>,
    mentioned_all: i64,
    cleared_to: i64,
    peer_read_seq: i64,
    marked_unread: bool,
    pinned: bool,
    muted: bool,
    draft: &'r str,
    members: i64,
    left: bool,
    removed_at: i64,
    newest: Blob<'r>,
    hidden: Blob<'r>,
}

#[derive(Debug, SerializeRow)]
struct SessionInsert<'r> {
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
    #[scylla(flatten)]
    row: SessionRow<'r>,
}

impl<'r> SessionRow<'r> {
    fn of(
        user: &'r UserId,
        partition: Partition,
        conversation: &'r ConversationId,
        session: &'r Session,
    ) -> Result<Self, BadColumn> {
        let tally = &session.tally;
        let mentions: Result<Vec<i64>, BadColumn> = tally
            .mentions
            .iter()
            .map(|seq| column::from_seq("mentions", *seq))
            .collect();
        Ok(Self {
            user_id: user.as_str(),
            log_partition: partition.get(),
            conversation_id: conversation.as_str(),
            applied: column::from_offset("applied", session.applied)?,
            mode: from_mode(session.mode),
            kind: column::from_kind(session.kind),
            title: &session.title,
            last_seq: column::from_seq("last_seq", session.last_seq)?,
            last_active: column::from_time(session.last_active),
            since: column::from_seq("since", session.since)?,
            read_seq: column::from_seq("read_seq", session.read_seq)?,
            unread: column::bigint("unread", tally.unread)?,
            mention_count: column::bigint("mention_count", tally.mention_count)?,
            mentions: mentions?,
            mentioned_all: column::from_seq_or_zero("mentioned_all", tally.mentioned_all)?,
            cleared_to: column::from_seq("cleared_to", session.cleared_to)?,
            peer_read_seq: column::from_seq("peer_read_seq", session.peer_read_seq)?,
            marked_unread: session.marked_unread,
            pinned: session.pinned,
            muted: session.muted,
            draft: &session.draft,
            members: i64::from(session.members),
            left: session.left,
            removed_at: column::from_seq_or_none("removed_at", session.removed_at)?,
            newest: Blob::encode("newest", &session.newest)?,
            hidden: Blob::encode("hidden", &session.hidden)?,
        })
    }

    fn tally(&self) -> Result<Tally, BadColumn> {
        let mentions: Result<Vec<Seq>, BadColumn> = self
            .mentions
            .iter()
            .map(|seq| column::message_seq("mentions", *seq))
            .collect();
        let tally = Tally {
            unread: column::number("unread", self.unread)?,
            mention_count: column::number("mention_count", self.mention_count)?,
            mentions: mentions?,
            mentioned_all: column::seq_or_zero("mentioned_all", self.mentioned_all)?,
        };
        if tally.mention_count < tally.mentions.len() as u64 {
            return Err(BadColumn::new(
                "mention_count",
                "is less than the mentions named",
            ));
        }
        Ok(tally)
    }
}

const fn from_mode(mode: Mode) -> &'static str {
    match mode {
        Mode::FannedOut => "fanned_out",
        Mode::Combined => "combined",
    }
}

impl Readable for SessionOf {
    type Row<'r> = SessionRow<'r>;

    fn key(row: &SessionRow<'_>) -> String {
        format!("{}, {}", row.user_id, row.conversation_id)
    }

    fn read(row: SessionRow<'_>) -> Result<Self, BadColumn> {
        let modes = [Mode::FannedOut, Mode::Combined];
        let session = Session {
            applied: column::offset("applied", row.applied)?,
            mode: column::word("mode", row.mode, modes, from_mode)?,
            kind: column::kind("kind", row.kind)?,
            title: row.title.to_owned(),
            last_seq: column::seq("last_seq", row.last_seq)?,
            newest: row.newest.decode("newest")?,
            last_active: column::time("last_active", row.last_active)?,
            since: column::seq("since", row.since)?,
            read_seq: column::seq("read_seq", row.read_seq)?,
            tally: row.tally()?,
            cleared_to: column::seq("cleared_to", row.cleared_to)?,
            hidden: row.hidden.decode("hidden")?,
            peer_read_seq: column::seq("peer_read_seq", row.peer_read_seq)?,
            marked_unread: row.marked_unread,
            pinned: row.pinned,
            muted: row.muted,
            draft: row.draft.to_owned(),
            members: column::number("members", row.members)?,
            left: row.left,
            removed_at: column::seq_or_none("removed_at", row.removed_at)?,
        };
        Ok(Self {
            user: column::user("user_id", row.user_id)?,
            partition: Partition::new(row.log_partition),
            conversation: column::conversation("conversation_id", row.conversation_id)?,
            session,
        })
    }
}

impl<'r> Writable for SessionInsert<'r> {
    type Partition = &'r str;

    fn partition(&self) -> &'r str {
        self.row.user_id
    }

    fn bytes(&self) -> usize {
        const FIXED: usize = 330;
        const MENTION: usize = 12;
        let row = &self.row;
        let names = row.user_id.len() + row.conversation_id.len();
        let texts = row.title.len() + row.draft.len();
        let blobs = row.newest.len() + row.hidden.len();
        FIXED + names + texts + blobs + row.mentions.len() * MENTION
    }

    fn key(&self) -> String {
        SessionOf::key(&self.row)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    proptest! {
        #[test]
        fn a_session_reads_back_as_it_was_written(
            user in sample::user(),
            conversation in sample::conversation(),
            session in sample::session(),
        ) {
            let partition = Partition::new(3);
            let row = SessionRow::of(&user, partition, &conversation, &session).unwrap();
            let read = Readable::read(row);
            prop_assert_eq!(read, Ok(SessionOf { user, partition, conversation, session }));
        }
    }
}
