//! The unread messages that mention the caller by name, across conversations, newest first.
//!
//! Session rows name them by seq; when they were logged only the messages themselves tell. A conversation's mentions
//! are no newer than its newest message, and descend with their seqs. So the conversations are merged: a message is
//! read once its conversation may hold the newest mention that is left, and a page reads about as many messages as it
//! shows, and one a conversation that was active since.

use std::{collections::VecDeque, sync::Arc};

use axum::extract::State;
use futures::future;
use serde::{Deserialize, Serialize};
use tidemark_event::{ConversationId, Seq};
use tidemark_fold::{
    Message,
    roaming::Roaming,
    sessions::{BlockNo, Sessions},
};
use utoipa::ToSchema;

use super::{Paging, history::messages_there, list, message::PreviewJson, session::Listed};
use crate::{
    app::{App, Page},
    cursor::CursorOf,
    metrics,
    problem::{Answer, Problem},
    reached::Target,
    request::{Caller, FromParams, Params, Query},
    shared::Since,
    views::Opened,
};

/// Conversations whose next mention is read at a time.
const CONVERSATIONS_AT_ONCE: usize = 32;

/// Mentions of one conversation that are read together.
const READ_AT_ONCE: usize = 16;

/// Blocks that are searched for older mentions at a time.
const BLOCKS_AT_ONCE: usize = 64;

/// The query of the list.
#[derive(Debug)]
pub(crate) struct ListMentions(Paging);

impl FromParams for ListMentions {
    fn take(params: &mut Params) -> Self {
        Self(Paging::take(params, 50, 200))
    }
}

/// An unread message that mentions the caller by name.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Mention)]
pub(crate) struct MentionJson {
    /// The conversation to jump into; the place there is `seq`.
    #[schema(value_type = String)]
    conversation_id: ConversationId,
    /// Its title; empty for none.
    title: String,
    #[serde(flatten)]
    message: PreviewJson,
}

/// A page of mentions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Mentions)]
pub(crate) struct MentionsJson {
    /// Newest first.
    mentions: Vec<MentionJson>,
    /// Where the list goes on; null at its end.
    next_cursor: Option<String>,
}

/// A mention's place in the list. Lists ascend by it: the newest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct MentionKey {
    logged_at: std::cmp::Reverse<i64>,
    conversation: String,
    seq: std::cmp::Reverse<u64>,
}

/// Unread mentions of the caller by name, across conversations
#[utoipa::path(
    get,
    path = "/mentions",
    operation_id = "list_mentions",
    tag = "Sessions",
    params(
        ("limit" = Option<usize>, Query, description = "How many at most: 50 if absent, up to 200"),
        ("cursor" = Option<String>, Query, description = "The next_cursor of the page before"),
    ),
    responses((status = 200, description = "A page of them", body = MentionsJson)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(ListMentions(Paging { limit, cursor, at })): Query<ListMentions>,
) -> Answer<Page<MentionsJson>> {
    let cursors = app.cursors(CursorOf::Mentions, &caller, "");
    let after: Option<MentionKey> = match cursor {
        Some(text) => Some(cursors.read(&text)?),
        None => None,
    };
    let sessions = app.views.sessions.get().await?;
    let roaming = app.views.roaming.get().await?;
    let basis = app.reach(&sessions, &at).await?;
    let list = list::load(&app, &sessions, &caller.user, basis.since).await?;
    let mentioned = list
        .sessions
        .into_iter()
        .filter(|listed| listed.is_listed());
    let mentioned: Vec<Listed> = mentioned.filter(Listed::has_mentions).collect();

    let mut target = Target::after(&at);
    for listed in &mentioned {
        target.include(listed.as_of());
    }
    let wait = app.settings.waits.at;
    let is_there = app
        .wait(&roaming, &target, wait, metrics::WAIT_AT)
        .await
        .is_ok();
    let merge = Merge {
        app: &app,
        caller: &caller,
        sessions: &sessions,
        roaming: &roaming,
        since: Since::now(),
    };
    let mut found = merge.after(mentioned, after.as_ref(), limit + 1).await?;
    let is_more = found.len() > limit;
    found.truncate(limit);
    let next = found
        .last()
        .filter(|_| is_more)
        .map(|(key, _)| cursors.write(key));
    Ok(Page {
        body: MentionsJson {
            mentions: found.into_iter().map(|(_, mention)| mention).collect(),
            next_cursor: next,
        },
        is_stale: list.is_stale || basis.is_stale || !is_there,
    })
}

/// Merges the mentions of many conversations.
struct Merge<'a> {
    app: &'a App,
    caller: &'a Caller,
    sessions: &'a Opened<Sessions>,
    roaming: &'a Opened<Roaming>,
    /// Roaming holds what the rows name, and is to be read since then.
    since: Since,
}

/// The mentions of one conversation that are still to come.
struct Source {
    listed: Listed,
    /// Known by seq alone, newest first.
    seqs: VecDeque<Seq>,
    /// Read, newest first: all newer than those in `seqs`.
    read: VecDeque<(MentionKey, MentionJson)>,
    /// None that is to come is newer.
    newest: i64,
    /// Mentions older than those in `seqs` that the row counts and does not name.
    unnamed: u64,
    /// The oldest that was named.
    oldest: Seq,
}

impl Source {
    fn of(listed: Listed) -> Self {
        let seqs: VecDeque<Seq> = listed.named_mentions().collect();
        let named = seqs.len() as u64;
        Self {
            newest: listed.last_active().millis(),
            unnamed: listed.row.tally.mention_count.saturating_sub(named),
            oldest: seqs.back().copied().unwrap_or(listed.row.last_seq.next()),
            read: VecDeque::new(),
            seqs,
            listed,
        }
    }

    /// Whether its next mention is not read yet.
    fn is_unread(&self) -> bool {
        self.read.is_empty() && (!self.seqs.is_empty() || self.unnamed > 0)
    }

    fn key(&self) -> Option<&MentionKey> {
        self.read.front().map(|(key, _)| key)
    }
}

impl Merge<'_> {
    /// The newest `most` mentions that come after a place in the list.
    async fn after(
        &self,
        mentioned: Vec<Listed>,
        after: Option<&MentionKey>,
        most: usize,
    ) -> Answer<Vec<(MentionKey, MentionJson)>> {
        let mut sources: Vec<Source> = mentioned.into_iter().map(Source::of).collect();
        let mut found = Vec::new();
        while found.len() < most {
            let newest_read = sources.iter().filter_map(Source::key).min();
            let newest_read = newest_read.map(|key| key.logged_at.0);
            let is_settled = |source: &Source| {
                !source.is_unread() || newest_read.is_some_and(|read| source.newest < read)
            };
            if !sources.iter().all(is_settled) {
                let mut unsettled: Vec<&mut Source> = sources
                    .iter_mut()
                    .filter(|source| !is_settled(source))
                    .collect();
                unsettled.sort_by_key(|source| std::cmp::Reverse(source.newest));
                unsettled.truncate(CONVERSATIONS_AT_ONCE);
                future::try_join_all(unsettled.into_iter().map(|source| self.read(source))).await?;
                continue;
            }
            let next = sources
                .iter_mut()
                .filter(|source| !source.read.is_empty())
                .min_by(|one, other| one.key().cmp(&other.key()));
            let Some((key, mention)) = next.and_then(|source| source.read.pop_front()) else {
                break;
            };
            if after.is_none_or(|after| key > *after) {
                found.push((key, mention));
            }
        }
        Ok(found)
    }

    /// Reads the next mentions of a conversation. What is not there yet, or mentions the caller no more, is passed by.
    async fn read(&self, source: &mut Source) -> Answer<()> {
        if source.seqs.is_empty() {
            self.name_older(source).await?;
        }
        let seqs: Vec<Seq> = source
            .seqs
            .drain(..source.seqs.len().min(READ_AT_ONCE))
            .collect();
        let conversation = &source.listed.conversation;
        let messages =
            messages_there(self.app, self.roaming, conversation, &seqs, self.since).await?;
        for stored in messages.into_iter().flatten() {
            let message = stored.message;
            source.newest = source.newest.min(message.logged_at.millis());
            if self.still_mentions(&message) {
                source.read.push_back(entry(&source.listed, &message));
            }
        }
        Ok(())
    }

    fn still_mentions(&self, message: &Message) -> bool {
        !message.recalled && message.mentions.contains(&self.caller.user)
    }

    /// Finds the next older mentions that the row counts and does not name, from the blocks as of the row.
    async fn name_older(&self, source: &mut Source) -> Answer<()> {
        let listed = &source.listed;
        let head = self.sessions.head(&listed.conversation).await?;
        let head = head.ok_or_else(Problem::internal)?;
        let settings = self.sessions.settings();
        let from = listed.row.first_counting();
        let mut to = source.oldest.previous();
        while from <= to {
            let newest = BlockNo::of(to, settings.block_seqs);
            let oldest = BlockNo::of(from, settings.block_seqs);
            let first = oldest.max(BlockNo::new(
                (newest.get() + 1).saturating_sub(BLOCKS_AT_ONCE as u64),
            ));
            let numbers = (first.get()..=newest.get()).map(BlockNo::new);
            let numbers = numbers.filter(|no| *no < head.extra.block.no);
            let blocks = self.sessions.blocks(&listed.conversation, numbers).await?;
            let blocks = blocks.iter().chain([&head.extra.block]);
            let tally = listed.tally_as_of(&self.caller.user, blocks, (from, to));
            if let Some(oldest_named) = tally.mentions.first() {
                source.unnamed = source.unnamed.saturating_sub(tally.mentions.len() as u64);
                source.oldest = *oldest_named;
                source.seqs = tally.mentions.into_iter().rev().collect();
                return Ok(());
            }
            to = Seq::new(first.get() * settings.block_seqs);
        }
        source.unnamed = 0;
        Ok(())
    }
}

fn entry(listed: &Listed, message: &Message) -> (MentionKey, MentionJson) {
    let key = MentionKey {
        logged_at: std::cmp::Reverse(message.logged_at.millis()),
        conversation: listed.conversation.as_str().to_owned(),
        seq: std::cmp::Reverse(message.seq.get()),
    };
    let mention = MentionJson {
        conversation_id: listed.conversation.clone(),
        title: listed.row.title.clone(),
        message: PreviewJson::of(message),
    };
    (key, mention)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_newest_comes_first_and_ties_are_told_apart() {
        let key = |logged_at: i64, conversation: &str, seq: u64| MentionKey {
            logged_at: std::cmp::Reverse(logged_at),
            conversation: conversation.to_owned(),
            seq: std::cmp::Reverse(seq),
        };
        let ordered = [
            key(9, "b", 1),
            key(8, "a", 7),
            key(8, "a", 6),
            key(8, "b", 9),
            key(3, "a", 1),
        ];
        assert!(ordered.is_sorted());
        let mut distinct = ordered.to_vec();
        distinct.dedup();
        assert_eq!(distinct.len(), ordered.len());
    }

    #[test]
    fn a_source_knows_what_its_row_counts_and_does_not_name() {
        let mut row = sample::session(900);
        row.tally.mention_count = 3;
        row.tally.mentions = [12, 410].map(Seq::new).to_vec();
        let g1 = sample::conversation("g1");
        let source = Source::of(Listed::fanned_out(
            tidemark_event::Partition::new(0),
            g1,
            row,
        ));
        assert_eq!(source.seqs, [410, 12].map(Seq::new));
        assert_eq!((source.unnamed, source.oldest), (1, sample::seq(12)));
        assert!(source.is_unread());
    }
}
