//! What a device has not stored yet, in bounded pages.
//!
//! The caller's places say what belongs into their inbox and how far the device is, their session rows where something
//! may be pending. Of those conversations the inbox's head is read, then what is newer in the place: so nobody is sent
//! what came after they were removed. Bodies come from the copies where there are any, the rest from roaming. What is
//! sent of a conversation is contiguous.
//!
//! A pull goes through the conversations by id. Its cursor holds the checkpoints of its first page, as log times:
//! messages logged later are left to the next pull, so that one ends however busy the conversations are. (One that
//! was logged in the very millisecond of a checkpoint, and after it, goes along.)

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use axum::extract::State;
use futures::{FutureExt, StreamExt, future, stream};
use serde::{Deserialize, Serialize};
use tidemark_event::{ConversationId, DeviceId, LogTime, NextOffset, Partition, Position, Seq};
use tidemark_fold::{
    Head, Stored,
    inbox::{Inbox, InboxExtra, Place},
    roaming::Roaming,
};
use tidemark_store::PlaceOf;
use utoipa::ToSchema;

use super::{
    Paging,
    history::messages_there,
    message::MessageJson,
    pending::{by_period, contiguous, first_pending, pending},
    session::needs_head,
};
use crate::{
    app::{App, Page},
    cursor::CursorOf,
    metrics,
    problem::{Answer, Problem},
    reached::{Checkpoints, Target},
    request::{Caller, FromParams, Params, Query},
    shared::{Read, Since},
    views::Opened,
};

/// Heads that one page may read: conversations may have nothing pending, so a page of many such is cut short.
const HEADS_A_PAGE: usize = 512;

/// Conversations that are looked at together.
const CONVERSATIONS_AT_ONCE: usize = 32;

/// Conversations whose messages are read ahead of the one that the page is at.
const READ_AHEAD: usize = 4;

/// Copies of hidden messages that may lie between those that are wanted, beyond which roaming is asked.
const HIDDEN_ALONG: usize = 64;

/// The query of a pull.
#[derive(Debug)]
pub(crate) struct PullQuery {
    paging: Paging,
    /// Required: none only where the query is refused.
    device: Option<DeviceId>,
}

impl FromParams for PullQuery {
    fn take(params: &mut Params) -> Self {
        Self {
            paging: Paging::take(params, 100, 500),
            device: params.required_device("device"),
        }
    }
}

/// A page of messages that a device has not stored.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InboxPage)]
pub(crate) struct InboxJson {
    /// By conversation, then ascending by seq.
    messages: Vec<MessageJson>,
    /// Where the pull goes on; null at its end.
    next_cursor: Option<String>,
}

/// Where a pull goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PullCursor {
    /// Where the inbox was when the pull began: partition, next offset and log time.
    began: Vec<(i32, i64, i64)>,
    /// The last conversation that was looked at, and the last seq of it that is done with.
    after: (String, u64),
}

/// What the device has not stored yet
///
/// Every message once, from the caller's first join on, by conversation and seq. Acknowledge what is stored by
/// `PUT /v1/inbox/ack`. A page may have fewer messages than asked for, or none, and still a next one.
#[utoipa::path(
    get,
    path = "/inbox",
    operation_id = "pull_inbox",
    tag = "Inbox",
    params(
        ("device" = String, Query, description = "The device, by the caller's own name for it"),
        ("limit" = Option<usize>, Query, description = "How many messages at most: 100 if absent, up to 500"),
        ("cursor" = Option<String>, Query, description = "The next_cursor of the page before"),
    ),
    responses((status = 200, description = "A page of it", body = InboxJson)),
)]
pub(crate) async fn pull(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<PullQuery>,
) -> Answer<Page<InboxJson>> {
    let Paging { limit, cursor, at } = query.paging;
    let Some(device) = query.device else {
        return Err(Problem::field("device", "is missing"));
    };
    let cursors = app.cursors(CursorOf::Inbox, &caller, device.as_str());
    let cursor: Option<PullCursor> = match cursor {
        Some(text) => Some(cursors.read(&text)?),
        None => None,
    };
    let inbox = app.views.inbox.get().await?;
    let sessions = app.views.sessions.get().await?;
    let roaming = app.views.roaming.get().await?;
    let begun = cursor.iter().flat_map(PullCursor::positions);
    let begun: Vec<Position> = begun.chain(at.iter().copied()).collect();
    let basis = app.reach(&inbox, &begun).await?;
    let basis = basis.and(app.reach(&sessions, &at).await?);

    // Before the places: those know of everything below these checkpoints.
    let seen = app.checkpoints(&inbox, Since::now()).await?.checkpoints;
    let (places, rows) = future::try_join(
        inbox.places_of(&caller.user),
        sessions.sessions_of(&caller.user),
    )
    .await?;
    let last_seqs: HashMap<ConversationId, Seq> = rows
        .into_iter()
        .filter(|row| !needs_head(&row.session))
        .map(|row| (row.conversation, row.session.last_seq))
        .collect();
    let cursor = cursor.unwrap_or_else(|| PullCursor::beginning(&places, &seen));
    let pull = Pull {
        app: &app,
        caller: &caller,
        device: &device,
        inbox: &inbox,
        roaming: &roaming,
        seen: &seen,
        until: cursor.until(),
    };
    let candidates = pull.candidates(places, &last_seqs, &cursor.after);
    let found = pull.page(candidates, limit).await?;
    let next = found.after.map(|after| PullCursor { after, ..cursor });
    Ok(Page {
        body: InboxJson {
            messages: found.messages,
            next_cursor: next.map(|cursor| cursors.write(&cursor)),
        },
        is_stale: basis.is_stale || found.is_stale,
    })
}

impl PullCursor {
    /// Of a pull that begins: before all conversations.
    fn beginning(places: &[PlaceOf], seen: &Checkpoints) -> Self {
        let partitions: std::collections::BTreeSet<Partition> =
            places.iter().map(|place| place.partition).collect();
        let began = partitions.iter().filter_map(|partition| {
            let checkpoint = seen.get(partition)?;
            Some((
                partition.get(),
                checkpoint.next_offset.get(),
                checkpoint.log_time.millis(),
            ))
        });
        Self {
            began: began.collect(),
            after: (String::new(), 0),
        }
    }

    /// The newest events that the first page rested on.
    fn positions(&self) -> impl Iterator<Item = Position> + '_ {
        let begun = self
            .began
            .iter()
            .filter(|(_, next_offset, _)| *next_offset > 0);
        begun.map(|(partition, next_offset, _)| Position {
            partition: Partition::new(*partition),
            offset: tidemark_event::Offset::new(next_offset - 1),
        })
    }

    /// What was logged later is left to the next pull.
    fn until(&self) -> BTreeMap<Partition, LogTime> {
        let began = self.began.iter();
        began
            .map(|(partition, _, log_time)| {
                (Partition::new(*partition), LogTime::from_millis(*log_time))
            })
            .collect()
    }
}

/// One page of a pull.
struct Pull<'a> {
    app: &'a App,
    caller: &'a Caller,
    device: &'a DeviceId,
    inbox: &'a Opened<Inbox>,
    roaming: &'a Opened<Roaming>,
    /// Where the inbox was before the places were read.
    seen: &'a Checkpoints,
    until: BTreeMap<Partition, LogTime>,
}

/// A conversation that may have something pending.
struct Candidate {
    place: PlaceOf,
    /// The first seq that the device may not have.
    from: Seq,
    until: LogTime,
}

/// A conversation that has something pending.
struct Pending {
    conversation: ConversationId,
    partition: Partition,
    head: Arc<Head<InboxExtra>>,
    until: LogTime,
    /// Ascending.
    seqs: Vec<Seq>,
}

/// What a page has.
#[derive(Default)]
struct Found {
    messages: Vec<MessageJson>,
    /// Where to go on after; none at the end.
    after: Option<(String, u64)>,
    is_stale: bool,
}

impl Pull<'_> {
    /// Conversations after a place in the pull that may have something pending, by id.
    fn candidates(
        &self,
        mut places: Vec<PlaceOf>,
        last_seqs: &HashMap<ConversationId, Seq>,
        after: &(String, u64),
    ) -> Vec<Candidate> {
        places.sort_unstable_by(|one, other| one.conversation.cmp(&other.conversation));
        let left = places
            .into_iter()
            .filter(|place| (place.conversation.as_str(), u64::MAX) > (after.0.as_str(), after.1));
        let candidates = left.filter_map(|place| {
            // A conversation that came after the pull began is left to the next one.
            let until = *self.until.get(&place.partition)?;
            let is_begun = place.conversation.as_str() == after.0;
            let done = if is_begun {
                Seq::new(after.1)
            } else {
                Seq::ZERO
            };
            let from = first_pending(&place.place, self.device, done);
            let may_have = match last_seqs.get(&place.conversation) {
                Some(last) => !pending(&place.place.member, from, *last, 1).is_empty(),
                // A large conversation: only its head tells.
                None => true,
            };
            may_have.then_some(Candidate { place, from, until })
        });
        candidates.collect()
    }

    /// At most `limit` messages of these conversations.
    async fn page(&self, candidates: Vec<Candidate>, limit: usize) -> Answer<Found> {
        let mut found = Found::default();
        let mut bytes_left = self.app.settings.limits.page_bytes;
        let mut looked_at = 0;
        for candidates in candidates.chunks(CONVERSATIONS_AT_ONCE) {
            if looked_at >= HEADS_A_PAGE {
                return Ok(found);
            }
            looked_at += candidates.len();
            // One more than the page holds tells that there is more.
            let most = limit + 1 - found.messages.len();
            let looks = candidates
                .iter()
                .map(|candidate| self.look(candidate, most));
            let looks = future::try_join_all(looks).await?;
            let (plan, is_cut) = plan(looks.into_iter().flatten(), most);
            let reads: Vec<_> = plan
                .iter()
                .map(|pending| self.read(pending).boxed())
                .collect();
            let mut reads = stream::iter(reads).buffered(READ_AHEAD);
            let mut read = plan.iter();
            while let (Some(rows), Some(pending)) = (reads.next().await, read.next()) {
                let (rows, is_behind) = rows?;
                found.is_stale |= is_behind;
                for row in rows {
                    let bytes = row.message.weight();
                    let is_full = found.messages.len() >= limit
                        || bytes > bytes_left && !found.messages.is_empty();
                    if is_full {
                        // What was put in last says where to go on.
                        return Ok(found);
                    }
                    bytes_left = bytes_left.saturating_sub(bytes);
                    found.after = Some((
                        pending.conversation.as_str().to_owned(),
                        row.message.seq.get(),
                    ));
                    let message = MessageJson::of(&pending.conversation, &row.message);
                    found.messages.push(message);
                }
            }
            let last = if is_cut {
                plan.last().map(|pending| &pending.conversation)
            } else {
                candidates
                    .last()
                    .map(|candidate| &candidate.place.conversation)
            };
            found.after = last.map(|last| (last.as_str().to_owned(), u64::MAX));
            // What was planned turned out to be less than a page: the others come with the next one.
            if is_cut {
                return Ok(found);
            }
        }
        found.after = None;
        Ok(found)
    }

    /// What is pending of a conversation: at most `most` seqs.
    async fn look(&self, candidate: &Candidate, most: usize) -> Answer<Option<Pending>> {
        let PlaceOf {
            partition,
            conversation,
            place,
            ..
        } = &candidate.place;
        let Some(head) = self.head(conversation).await? else {
            return Ok(None);
        };
        let seen = self.seen.get(partition);
        let known = seen.map_or(NextOffset::START, |checkpoint| checkpoint.next_offset);
        let newer;
        let place: &Place = if known.admits(head.applied) {
            // The head knows of more than the place was sure to: a leaving, perhaps.
            match self
                .inbox
                .place(&self.caller.user, *partition, conversation)
                .await?
            {
                Some(place) => {
                    newer = place;
                    &newer
                }
                None => return Ok(None),
            }
        } else {
            place
        };
        let seqs = pending(&place.member, candidate.from, head.last_seq, most);
        Ok((!seqs.is_empty()).then(|| Pending {
            conversation: conversation.clone(),
            partition: *partition,
            head,
            until: candidate.until,
            seqs,
        }))
    }

    async fn head(&self, conversation: &ConversationId) -> Answer<Option<Arc<Head<InboxExtra>>>> {
        let key = (self.inbox.no(), conversation.clone());
        let (generation, name) = (self.inbox.generation.clone(), conversation.clone());
        let read = move || async move { Ok(generation.head(&name).await?.map(Arc::new)) };
        let Read { value, .. } = self
            .app
            .reads
            .inbox_heads
            .get(key, Since::now(), read)
            .await?;
        Ok(value)
    }

    /// The pending messages of a conversation, contiguous; and whether roaming, behind the inbox, lacks some.
    async fn read(&self, pending: &Pending) -> Answer<(Vec<Stored>, bool)> {
        let mut rows = Vec::with_capacity(pending.seqs.len());
        let copies = by_period(&pending.head.extra, &pending.seqs)
            .into_iter()
            .map(|(period, range)| {
                let (user, conversation) = (&self.caller.user, &pending.conversation);
                let most = pending.seqs.len() + HIDDEN_ALONG;
                self.inbox.copies(user, period, conversation, range, most)
            });
        for copies in future::try_join_all(copies).await? {
            rows.extend(copies);
        }
        let missing = missing(&pending.seqs, &rows);
        let mut is_behind = false;
        if !missing.is_empty() {
            let target = Target::after(&[Position {
                partition: pending.partition,
                offset: pending.head.applied,
            }]);
            let wait = self.app.settings.waits.at;
            is_behind = self
                .app
                .wait(self.roaming, &target, wait, metrics::WAIT_AT)
                .await
                .is_err();
            let (conversation, since) = (&pending.conversation, Since::now());
            let found =
                messages_there(self.app, self.roaming, conversation, &missing, since).await?;
            rows.extend(found.into_iter().flatten());
        }
        Ok((contiguous(&pending.seqs, rows, pending.until), is_behind))
    }
}

/// The first conversations that fill a page of `most` messages, and whether there are others.
fn plan(looks: impl Iterator<Item = Pending>, most: usize) -> (Vec<Pending>, bool) {
    let mut planned = 0;
    let mut plan = Vec::new();
    for pending in looks {
        if planned >= most {
            return (plan, true);
        }
        planned += pending.seqs.len();
        plan.push(pending);
    }
    (plan, false)
}

/// Those of ascending seqs that have no row.
fn missing(seqs: &[Seq], rows: &[Stored]) -> Vec<Seq> {
    let there: std::collections::BTreeSet<Seq> = rows.iter().map(|row| row.message.seq).collect();
    seqs.iter()
        .filter(|seq| !there.contains(seq))
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cursor::Cursors, sample};

    #[test]
    fn a_cursor_keeps_where_its_pull_began() {
        let cursor = PullCursor {
            began: vec![(0, 0, 0), (3, 1_205, 9_000)],
            after: ("g1".to_owned(), 7),
        };
        let (of, user) = (CursorOf::Inbox, sample::user("anna"));
        let cursors = Cursors {
            of,
            log: "log",
            user: &user,
            list: "phone",
        };
        assert_eq!(cursors.read(&cursors.write(&cursor)), Ok(cursor.clone()));
        let positions: Vec<String> = cursor.positions().map(|it| it.to_string()).collect();
        assert_eq!(positions, ["3-1204"]);
        assert_eq!(
            cursor.until()[&Partition::new(3)],
            LogTime::from_millis(9_000)
        );
    }

    #[test]
    fn a_device_is_named() {
        let read = |query: &str| Params::parse(query).read::<PullQuery>();
        assert_eq!(read("device=phone").unwrap().paging.limit, 100);
        assert!(read("").is_err());
        assert!(read("device=phone&limit=501").is_err());
    }
}
