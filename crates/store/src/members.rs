//! `<view>_<generation>_members`: everybody who is or was a member.

use std::collections::BTreeMap;

use futures::stream::BoxStream;
use scylla::{DeserializeRow, SerializeRow};
use tidemark_event::{ConversationId, Seq, UserId};
use tidemark_fold::Member;

use crate::{
    TokenRange,
    column::{self, BadColumn, Blob},
    error::StoreError,
    link::{Job, Link, Readable, Statement},
    schema::Names,
    timestamp::WriteTimestamp,
    write::{Writable, Written, write_jobs},
};

const INSERT: &str = "INSERT INTO {table} (conversation_id, user_id, applied, is_present, since, state) \
    VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
const SELECT_SOME: &str = "SELECT conversation_id, user_id, applied, is_present, since, state FROM {table} \
    WHERE conversation_id = ? AND user_id IN ?";
const SELECT_ALL: &str = "SELECT conversation_id, user_id, applied, is_present, since, state FROM {table} \
    WHERE conversation_id = ?";
const SELECT_AFTER: &str = "SELECT conversation_id, user_id, applied, is_present, since, state FROM {table} \
    WHERE conversation_id = ? AND user_id > ? LIMIT ?";
const SCAN: &str = "SELECT conversation_id, user_id, applied, is_present, since, state FROM {table} \
    WHERE token(conversation_id) > ? AND token(conversation_id) <= ?";

/// The most rows that one read of present members looks at.
const MAX_REACH: usize = 1_000;

/// The statements of one generation's members.
#[derive(Debug)]
pub(crate) struct Members {
    insert: Statement,
    select_some: Statement,
    select_all: Statement,
    select_after: Statement,
    scan: Statement,
}

impl Members {
    pub(crate) async fn prepare(link: &Link, names: &Names) -> Result<Self, StoreError> {
        let table = names.table("members");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select_some: link.prepare(&table, SELECT_SOME).await?,
            select_all: link.prepare(&table, SELECT_ALL).await?,
            select_after: link.prepare(&table, SELECT_AFTER).await?,
            scan: link.prepare(&table, SCAN).await?,
        })
    }

    pub(crate) fn writes<'a>(
        &'a self,
        link: &'a Link,
        members: impl IntoIterator<Item = (&'a ConversationId, &'a UserId, &'a Member)>,
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let mut rows = Vec::new();
        for (conversation, user, member) in members {
            let row = MemberRow::of(conversation, user, member).map_err(|bad| {
                let key = format!("{conversation}, {user}");
                StoreError::unwritable(self.insert.table(), key, bad)
            })?;
            rows.push(MemberInsert {
                timestamp: WriteTimestamp::applied(member.applied),
                row,
            });
        }
        Ok(write_jobs(link, &self.insert, rows))
    }

    /// Those of `users`, at most [`MAX_IN`](crate::layout::MAX_IN), who ever were members.
    pub(crate) async fn read_some(
        &self,
        link: &Link,
        conversation: &ConversationId,
        users: &[UserId],
    ) -> Result<BTreeMap<UserId, Member>, StoreError> {
        let names: Vec<&str> = users.iter().map(UserId::as_str).collect();
        let rows: Vec<MemberOf> = link
            .all(
                &self.select_some,
                &(conversation.as_str(), names),
                conversation.as_str(),
            )
            .await?;
        Ok(rows.into_iter().map(|row| (row.user, row.member)).collect())
    }

    pub(crate) async fn read_all(
        &self,
        link: &Link,
        conversation: &ConversationId,
    ) -> Result<Vec<(UserId, Member)>, StoreError> {
        let values = (conversation.as_str(),);
        let rows: Vec<MemberOf> = link
            .all(&self.select_all, &values, conversation.as_str())
            .await?;
        Ok(rows.into_iter().map(|row| (row.user, row.member)).collect())
    }

    /// At most `limit` present members in the order of their ids, from the first above `after` on. Former members in
    /// between are read and left out.
    pub(crate) async fn read_present(
        &self,
        link: &Link,
        conversation: &ConversationId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Result<Vec<(UserId, Member)>, StoreError> {
        let mut present = Vec::new();
        // Ids are never empty, so all come after the empty text.
        let mut after = after.map_or_else(String::new, |user| user.as_str().to_owned());
        // Where most have left, each read looks further than the one before.
        let mut reach = limit.min(MAX_REACH);
        while present.len() < limit {
            let rows_at_most = i32::try_from(reach).unwrap_or(i32::MAX);
            let values = (conversation.as_str(), after.as_str(), rows_at_most);
            let rows: Vec<MemberOf> = link
                .all(&self.select_after, &values, conversation.as_str())
                .await?;
            let is_end = rows.len() < reach;
            if let Some(last) = rows.last() {
                after = last.user.as_str().to_owned();
            }
            let still_members = rows.into_iter().filter(|row| row.member.is_present());
            present.extend(still_members.map(|row| (row.user, row.member)));
            if is_end {
                break;
            }
            reach = (reach * 2).min(MAX_REACH);
        }
        present.truncate(limit);
        Ok(present)
    }

    pub(crate) fn scan<'a>(
        &'a self,
        link: &'a Link,
        range: TokenRange,
    ) -> BoxStream<'a, Result<MemberOf, StoreError>> {
        link.scan(&self.scan, range.bounds(), range.to_string())
    }
}

/// A member and of which conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberOf {
    /// The conversation.
    pub conversation: ConversationId,
    /// The user.
    pub user: UserId,
    /// Their place in it.
    pub member: Member,
}

#[derive(Debug, SerializeRow, DeserializeRow)]
pub(crate) struct MemberRow<'r> {
    conversation_id: &'r str,
    user_id: &'r str,
    applied: i64,
    is_present: bool,
    since: i64,
    state: Blob<'r>,
}

#[derive(Debug, SerializeRow)]
struct MemberInsert<'r> {
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
    #[scylla(flatten)]
    row: MemberRow<'r>,
}

impl<'r> MemberRow<'r> {
    fn of(
        conversation: &'r ConversationId,
        user: &'r UserId,
        member: &Member,
    ) -> Result<Self, BadColumn> {
        Ok(Self {
            conversation_id: conversation.as_str(),
            user_id: user.as_str(),
            applied: column::from_offset("applied", member.applied)?,
            is_present: member.is_present(),
            since: column::from_seq("since", member.since().unwrap_or(Seq::ZERO))?,
            state: Blob::encode("state", member)?,
        })
    }
}

impl Readable for MemberOf {
    type Row<'r> = MemberRow<'r>;

    fn key(row: &MemberRow<'_>) -> String {
        format!("{}, {}", row.conversation_id, row.user_id)
    }

    fn read(row: MemberRow<'_>) -> Result<Self, BadColumn> {
        let member: Member = row.state.decode("state")?;
        if member.applied != column::offset("applied", row.applied)? {
            return Err(BadColumn::new("applied", "is not that of the state"));
        }
        if member.is_present() != row.is_present {
            return Err(BadColumn::new("is_present", "is not that of the state"));
        }
        Ok(Self {
            conversation: column::conversation("conversation_id", row.conversation_id)?,
            user: column::user("user_id", row.user_id)?,
            member,
        })
    }
}

impl<'r> Writable for MemberInsert<'r> {
    type Partition = &'r str;

    fn partition(&self) -> &'r str {
        self.row.conversation_id
    }

    fn bytes(&self) -> usize {
        const FIXED: usize = 80;
        let row = &self.row;
        FIXED + row.conversation_id.len() + row.user_id.len() + row.state.len()
    }

    fn key(&self) -> String {
        MemberOf::key(&self.row)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    proptest! {
        #[test]
        fn a_member_reads_back_as_it_was_written(
            conversation in sample::conversation(),
            user in sample::user(),
            member in sample::member(),
        ) {
            let read = Readable::read(MemberRow::of(&conversation, &user, &member).unwrap());
            prop_assert_eq!(read, Ok(MemberOf { conversation, user, member }));
        }

        #[test]
        fn columns_that_do_not_fit_the_state_are_noticed(member in sample::member()) {
            let conversation = ConversationId::new("g1").unwrap();
            let user = UserId::new("bo").unwrap();
            let mut row = MemberRow::of(&conversation, &user, &member).unwrap();
            row.is_present = !row.is_present;
            let damage = BadColumn::new("is_present", "is not that of the state");
            prop_assert_eq!(MemberOf::read(row), Err(damage));
        }
    }
}
