//! A conversation's messages: the permanent record, as far as the caller may see it.
//!
//! Which seqs a page has is known before a message is read: memberships, a clear and what was hidden are in the
//! member's row, and seqs have no gaps. So a page costs what it shows, also in a history of which almost all is
//! hidden. It is read in the order in which it is wanted, nearest first, until it is full or holds as many bytes as a
//! page may.

use std::sync::Arc;

use axum::extract::State;
use futures::future;
use serde::{Deserialize, Serialize};
use tidemark_event::{ConversationId, EventId, Seq};
use tidemark_fold::{AcceptedId, Member, Stored, roaming::Roaming};
use tidemark_store::Order;
use utoipa::ToSchema;

use super::{Paging, message::MessageJson};
use crate::{
    app::{App, Page},
    cursor::CursorOf,
    judge,
    problem::Answer,
    request::{Caller, FromParams, InConversation, Params, Query},
    room,
    shared::Since,
    views::Opened,
    writes::{Fate, fate_of, refused},
};

/// Seqs that are read together: how many a page may read beyond its bytes.
const READ_AT_ONCE: usize = 64;

/// Hidden messages in between that are read along, rather than by another request.
const WORTH_READING_ALONG: u64 = 8;

/// Which messages are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Those before a seq; the newest if none is given.
    Before(Option<Seq>),
    /// Those after a seq.
    After(Seq),
    /// Those about a seq, itself included.
    Around(Seq),
    /// The one that an event has sent.
    Event(EventId),
}

/// Where a history goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum GoOn {
    Before(u64),
    After(u64),
}

/// The query of a history.
#[derive(Debug)]
pub(crate) struct ListMessages {
    paging: Paging,
    wanted: Wanted,
}

impl FromParams for ListMessages {
    fn take(params: &mut Params) -> Self {
        let paging = Paging::take(params, 50, 200);
        let (before, after) = (params.seq("before"), params.seq("after"));
        let (around, event) = (params.seq("around"), params.event_id("event_id"));
        let given = [
            ("before", before.is_some()),
            ("after", after.is_some()),
            ("around", around.is_some()),
            ("event_id", event.is_some()),
            ("cursor", paging.cursor.is_some()),
        ];
        let mut given = given.iter().filter(|(_, is_given)| *is_given);
        if let (Some((first, _)), Some((second, _))) = (given.next(), given.next()) {
            params.wrong(second, format!("cannot stand beside {first}"));
        }
        let wanted = match (after, around, event) {
            (Some(after), _, _) => Wanted::After(after),
            (_, Some(around), _) => Wanted::Around(around),
            (_, _, Some(event)) => Wanted::Event(event),
            (None, None, None) => Wanted::Before(before),
        };
        Self { paging, wanted }
    }
}

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Messages)]
pub(crate) struct MessagesJson {
    /// Ascending by seq.
    messages: Vec<MessageJson>,
    /// Where the list goes on, in the direction it was asked in; null at its end, and about a seq.
    next_cursor: Option<String>,
}

/// A conversation's messages
///
/// What the caller may see of it, ascending. Without before, after and around: the newest. What the caller has hidden
/// is left out before the limit counts; what was recalled is there without a body. With event_id: the message that the
/// event has sent, nothing where the event is not known or sent none, and a problem where it was refused.
#[utoipa::path(
    get,
    path = "/conversations/{conversation_id}/messages",
    operation_id = "list_messages",
    tag = "Messages",
    params(
        ("conversation_id" = String, Path, description = "The conversation"),
        ("before" = Option<u64>, Query, description = "Those before this seq, the newest of them"),
        ("after" = Option<u64>, Query, description = "Those after this seq, the oldest of them"),
        ("around" = Option<u64>, Query, description = "Those about this seq, itself included"),
        ("event_id" = Option<String>, Query, description = "The one that this event has sent, within the dedupe window"),
        ("limit" = Option<usize>, Query, description = "How many at most: 50 if absent, up to 200"),
        ("cursor" = Option<String>, Query, description = "The next_cursor of the page before"),
    ),
    responses((status = 200, description = "A page of them", body = MessagesJson)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    InConversation(conversation): InConversation,
    Query(query): Query<ListMessages>,
) -> Answer<Page<MessagesJson>> {
    let Paging { limit, cursor, at } = query.paging;
    let cursors = app.cursors(CursorOf::History, &caller, conversation.as_str());
    let wanted = match cursor {
        Some(text) => match cursors.read(&text)? {
            GoOn::Before(seq) => Wanted::Before(Some(Seq::new(seq))),
            GoOn::After(seq) => Wanted::After(Seq::new(seq)),
        },
        None => query.wanted,
    };
    let view = app.views.roaming.get().await?;
    let basis = app.reach(&view, &at).await?;
    let partition = app.partition_of(&conversation);
    let reader = Reader {
        app: &app,
        view: &view,
        conversation: &conversation,
        caller: &caller,
    };
    let (messages, go_on) = app
        .judged(&view, partition, || reader.page(wanted, limit))
        .await?;
    Ok(Page {
        body: MessagesJson {
            messages,
            next_cursor: go_on.map(|go_on| cursors.write(&go_on)),
        },
        is_stale: basis.is_stale,
    })
}

/// Reads one conversation for one caller.
pub(super) struct Reader<'a> {
    pub(super) app: &'a App,
    pub(super) view: &'a Opened<Roaming>,
    pub(super) conversation: &'a ConversationId,
    pub(super) caller: &'a Caller,
}

impl Reader<'_> {
    /// The newest messages that the caller sees up to `last`, ascending: at most `most`, and as many bytes as a page
    /// may have.
    pub(super) async fn newest(&self, last: Seq, most: usize) -> Answer<Vec<MessageJson>> {
        let (room, read) = room::enter(self.app, self.view, self.conversation, self.caller).await?;
        let member = judge::may_read(self.conversation, self.caller, &room)?;
        let last = last.min(room.head.last_seq);
        let seqs = nearest(member, last, Wanted::Before(None), most);
        let rows = self.read(&seqs, read).await?;
        Ok(self.ascending(rows))
    }

    fn ascending(&self, mut rows: Vec<Stored>) -> Vec<MessageJson> {
        rows.sort_unstable_by_key(|row| row.message.seq);
        let messages = rows
            .iter()
            .map(|row| MessageJson::of(self.conversation, &row.message));
        messages.collect()
    }

    async fn page(&self, wanted: Wanted, limit: usize) -> Answer<(Vec<MessageJson>, Option<GoOn>)> {
        let (room, read) = room::enter(self.app, self.view, self.conversation, self.caller).await?;
        let member = judge::may_read(self.conversation, self.caller, &room)?;
        let last = room.head.last_seq;
        let wanted = match wanted {
            Wanted::Event(event) => match self.sent_by(event).await? {
                Some(seq) if member.sees(seq) && seq <= last => return self.only(seq).await,
                Some(_) | None => return Ok((Vec::new(), None)),
            },
            other => other,
        };
        let mut seqs = nearest(member, last, wanted, limit + 1);
        let is_more = seqs.len() > limit;
        seqs.truncate(limit);
        let rows = self.read(&seqs, read).await?;
        let is_cut = is_more || rows.len() < seqs.len();
        let farthest = rows
            .last()
            .filter(|_| is_cut)
            .map(|row| row.message.seq.get());
        let go_on = farthest.and_then(|seq| match wanted {
            Wanted::Before(_) => Some(GoOn::Before(seq)),
            Wanted::After(_) => Some(GoOn::After(seq)),
            Wanted::Around(_) | Wanted::Event(_) => None,
        });
        Ok((self.ascending(rows), go_on))
    }

    /// The message that an event has sent; none where it is not known, or sent none.
    async fn sent_by(&self, event: EventId) -> Answer<Option<Seq>> {
        match fate_of(self.app, self.view, self.conversation, event).await? {
            Fate::Accepted(AcceptedId { seq, .. }) => Ok(seq),
            Fate::Refused(_, reason) => Err(refused(event, reason)),
            Fate::Unknown => Ok(None),
        }
    }

    async fn only(&self, seq: Seq) -> Answer<(Vec<MessageJson>, Option<GoOn>)> {
        let message = room::message(self.view, self.conversation, seq).await?;
        Ok((vec![MessageJson::of(self.conversation, &message)], None))
    }

    /// The messages at `seqs`, in that order, until they hold as many bytes as a page may. They are at or below the
    /// last seq of a head that was read by `since`.
    async fn read(&self, seqs: &[Seq], since: Since) -> Answer<Vec<Stored>> {
        let mut page = Vec::with_capacity(seqs.len());
        let mut room_left = self.app.settings.limits.page_bytes;
        for seqs in seqs.chunks(READ_AT_ONCE) {
            for row in messages_at(self.app, self.view, self.conversation, seqs, since).await? {
                let bytes = row.message.weight();
                if bytes > room_left && !page.is_empty() {
                    return Ok(page);
                }
                room_left = room_left.saturating_sub(bytes);
                page.push(row);
            }
        }
        Ok(page)
    }
}

/// The messages at some seqs, in their order. All are at or below the last seq of a head that was read by `since`.
pub(super) async fn messages_at(
    app: &App,
    view: &Opened<Roaming>,
    conversation: &ConversationId,
    seqs: &[Seq],
    since: Since,
) -> Answer<Vec<Stored>> {
    let found = messages_there(app, view, conversation, seqs, since).await?;
    let mut messages = Vec::with_capacity(seqs.len());
    for (seq, row) in seqs.iter().zip(found) {
        messages.push(row.ok_or_else(|| room::lacks_message(conversation, *seq))?);
    }
    Ok(messages)
}

/// The messages at some seqs, in their order, as far as they are there, by a read that began at `since` or later.
pub(super) async fn messages_there(
    app: &App,
    view: &Opened<Roaming>,
    conversation: &ConversationId,
    seqs: &[Seq],
    since: Since,
) -> Answer<Vec<Option<Stored>>> {
    let stretches = stretches(seqs).into_iter().map(|stretch| {
        let (generation, name) = (view.generation.clone(), conversation.clone());
        let key = (generation.no(), name.clone(), stretch);
        let read = move || async move {
            let messages = generation.messages(&name, stretch, usize::MAX, Order::Ascending);
            messages.await.map(Arc::new)
        };
        app.reads.messages.get(key, since, read)
    });
    let stretches = future::try_join_all(stretches).await?;
    let find = |seq: &Seq| {
        stretches.iter().find_map(|stretch| {
            let rows = &stretch.value;
            let place = rows.binary_search_by_key(seq, |row| row.message.seq).ok()?;
            rows.get(place).cloned()
        })
    };
    Ok(seqs.iter().map(find).collect())
}

/// Ranges, both ends inclusive, that hold all of `seqs` and little else.
fn stretches(seqs: &[Seq]) -> Vec<(Seq, Seq)> {
    let mut sorted = seqs.to_vec();
    sorted.sort_unstable();
    let mut stretches: Vec<(Seq, Seq)> = Vec::new();
    for seq in sorted {
        match stretches.last_mut() {
            Some((_, to)) if seq.get() - to.get() <= WORTH_READING_ALONG + 1 => *to = seq,
            _ => stretches.push((seq, seq)),
        }
    }
    stretches
}

/// The seqs that the member sees in a conversation of `last` messages and that are wanted, at most `most`, the
/// nearest to what was asked for first.
fn nearest(member: &Member, last: Seq, wanted: Wanted, most: usize) -> Vec<Seq> {
    let ranges = member.visible_ranges(last);
    let is_shown = |seq: &Seq| !member.hidden.contains(seq);
    let descending_from = |from: Seq| {
        let below = ranges.iter().rev().filter(move |(first, _)| *first <= from);
        below.flat_map(move |(first, to)| {
            (first.get()..=to.get().min(from.get())).rev().map(Seq::new)
        })
    };
    let ascending_from = |from: Seq| {
        let above = ranges.iter().filter(move |(_, to)| *to >= from);
        above.flat_map(move |(first, to)| (first.get().max(from.get())..=to.get()).map(Seq::new))
    };
    match wanted {
        Wanted::Before(None) => descending_from(last).filter(is_shown).take(most).collect(),
        Wanted::Before(Some(seq)) => descending_from(seq.previous())
            .filter(is_shown)
            .take(most)
            .collect(),
        Wanted::After(seq) => ascending_from(seq.next())
            .filter(is_shown)
            .take(most)
            .collect(),
        Wanted::Around(seq) => {
            // The seq itself goes with the newer half.
            let mut newer = ascending_from(seq).filter(is_shown).take(most);
            let mut older = descending_from(seq.previous()).filter(is_shown).take(most);
            let mut seqs = Vec::new();
            loop {
                let (next_newer, next_older) = (newer.next(), older.next());
                if next_newer.is_none() && next_older.is_none() {
                    break;
                }
                seqs.extend(next_newer.into_iter().chain(next_older));
            }
            seqs.truncate(most);
            seqs
        }
        Wanted::Event(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use tidemark_event::Offset;
    use tidemark_fold::{Interval, Leaving};

    use super::*;
    use crate::sample;

    /// Saw 5 to 8 and, since 12, everything; has hidden 13.
    fn member() -> Member {
        let interval = |since: u64, until: Option<u64>| Interval {
            since: sample::seq(since),
            joined: Offset::new(1),
            left: until.map(|until| Leaving {
                until: sample::seq(until),
                at: Offset::new(2),
            }),
        };
        Member {
            intervals: vec![interval(5, Some(8)), interval(12, None)],
            hidden: [sample::seq(13)].into(),
            ..sample::member()
        }
    }

    #[track_caller]
    fn shows(wanted: Wanted, most: usize, expected: &[u64]) {
        let seqs = nearest(&member(), sample::seq(16), wanted, most);
        let seqs: Vec<u64> = seqs.into_iter().map(Seq::get).collect();
        assert_eq!(seqs, expected);
    }

    #[test]
    fn a_page_has_what_the_member_sees_nearest_first() {
        shows(Wanted::Before(None), 3, &[16, 15, 14]);
        shows(Wanted::Before(None), 9, &[16, 15, 14, 12, 8, 7, 6, 5]);
        shows(Wanted::Before(Some(sample::seq(14))), 2, &[12, 8]);
        shows(Wanted::Before(Some(sample::seq(99))), 1, &[16]);
        shows(Wanted::Before(Some(sample::seq(5))), 9, &[]);
        shows(Wanted::Before(Some(sample::seq(0))), 9, &[]);
        shows(Wanted::After(sample::seq(0)), 3, &[5, 6, 7]);
        shows(Wanted::After(sample::seq(8)), 9, &[12, 14, 15, 16]);
        shows(Wanted::After(sample::seq(16)), 9, &[]);
        shows(Wanted::Around(sample::seq(14)), 5, &[14, 12, 15, 8, 16]);
        shows(Wanted::Around(sample::seq(10)), 3, &[12, 8, 14]);
        shows(Wanted::Around(sample::seq(99)), 2, &[16, 15]);
    }

    #[test]
    fn a_page_of_a_history_that_is_almost_all_hidden_reads_what_it_shows() {
        let mut member = sample::member();
        member.hidden = (1..=7_000)
            .filter(|seq| seq % 1_000 != 0)
            .map(Seq::new)
            .collect();
        let seqs = nearest(&member, sample::seq(7_000), Wanted::Before(None), 50);
        assert_eq!(seqs.len(), 7);
        let read: u64 = stretches(&seqs)
            .iter()
            .map(|(from, to)| to.get() - from.get() + 1)
            .sum();
        assert_eq!(read, 7);
    }

    #[test]
    fn small_holes_are_read_along() {
        let seqs = [20, 9, 1, 2, 30].map(Seq::new);
        let stretches: Vec<(u64, u64)> = stretches(&seqs)
            .iter()
            .map(|(from, to)| (from.get(), to.get()))
            .collect();
        assert_eq!(stretches, [(1, 9), (20, 20), (30, 30)]);
    }

    #[test]
    fn a_history_is_asked_for_in_one_way() {
        let read = |query: &str| Params::parse(query).read::<ListMessages>();
        assert_eq!(read("").unwrap().wanted, Wanted::Before(None));
        assert_eq!(
            read("after=3").unwrap().wanted,
            Wanted::After(sample::seq(3))
        );
        for query in ["before=3&after=1", "around=3&before=1", "after=1&cursor=x"] {
            assert!(read(query).is_err(), "{query}");
        }
        assert!(read("limit=201").is_err());
    }
}
