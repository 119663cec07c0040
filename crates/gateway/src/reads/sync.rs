//! The first screen in one call: the newest sessions with their newest messages.
//!
//! Where a session's row carries its newest message whole, and no more than that is asked for, the answer comes from
//! the caller's own partition alone. For more, roaming is asked, once it has reached what the rows rest on: nested
//! messages end where their session does.
//!
//! The token that is handed out holds, for each partition of the log, the least checkpoint of the views used, read
//! before their rows; their generations; and, where there are more sessions than were sent, the place to go on from.
//! Nothing is served by it yet: see [`sync`].

use std::sync::Arc;

use axum::extract::State;
use futures::future;
use serde::{Deserialize, Serialize};
use tidemark_event::{ConversationId, NextOffset, Partition, Position, Seq};
use tidemark_fold::roaming::Roaming;
use utoipa::ToSchema;

use super::{
    history::Reader,
    list,
    message::MessageJson,
    session::{ListKey, Listed, SessionJson},
    sessions::total_unread,
};
use crate::{
    app::{App, Page},
    cursor::CursorOf,
    metrics,
    problem::{Answer, Kind, Problem},
    reached::{Checkpoints, Target},
    request::{Caller, FromParams, Params, Query},
    shared::Since,
    views::Opened,
};

/// Sessions whose messages are read at a time.
const SESSIONS_AT_ONCE: usize = 16;

/// The query of a sync.
#[derive(Debug)]
pub(crate) struct SyncQuery {
    since: Option<String>,
    sessions: usize,
    messages: usize,
    at: Vec<Position>,
}

impl FromParams for SyncQuery {
    fn take(params: &mut Params) -> Self {
        // Only a delta can be waited for.
        params.seconds("wait", std::time::Duration::from_secs(60));
        Self {
            since: params.one("since"),
            sessions: params.limit("sessions", 20, 200),
            messages: params.count("messages", 1, 0, 50),
            at: params.at(),
        }
    }
}

/// A session with its newest messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SyncSession)]
pub(crate) struct SyncSessionJson {
    #[serde(flatten)]
    session: SessionJson,
    /// Its newest messages that the caller sees, ascending.
    messages: Vec<MessageJson>,
    /// Messages edited, recalled or hidden by the caller since the token; none without one.
    #[schema(value_type = Vec<u64>)]
    changed: Vec<Seq>,
    /// There were more of those than are named.
    changed_dropped: bool,
}

/// What a client shows first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sync)]
pub(crate) struct SyncJson {
    /// Those with unread mentions first, then in the order of the list.
    sessions: Vec<SyncSessionJson>,
    /// Conversations that have left the list since the token; none without one.
    #[schema(value_type = Vec<String>)]
    removed: Vec<ConversationId>,
    /// What is unread in all listed sessions together, muted ones left out.
    total_unread: u64,
    /// There is more than was sent; `next` covers only what was.
    more: bool,
    /// A token for the next sync.
    next: String,
}

/// Where a client is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SyncToken {
    sessions_generation: u16,
    roaming_generation: u16,
    /// For each partition of the log the next offset that the client has not seen.
    next_offsets: Vec<i64>,
    /// The last session of a first screen that did not hold all.
    resume: Option<ScreenKey>,
}

/// A place in the first screen: unread mentions first, then as in the list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ScreenKey {
    has_no_mentions: bool,
    list: ListKey,
}

/// The first screen in one call
///
/// The newest sessions, those with unread mentions first, each with its newest messages; and a token for the next
/// sync. Deltas are not served yet: with `since` the answer is a problem that says to start over.
#[utoipa::path(
    get,
    path = "/sync",
    operation_id = "sync",
    tag = "Sessions",
    params(
        ("since" = Option<String>, Query, description = "The token of an earlier sync"),
        ("sessions" = Option<usize>, Query, description = "How many sessions at most: 20 if absent, up to 200"),
        ("messages" = Option<usize>, Query, description = "How many messages of each at most: 1 if absent, up to 50"),
        ("wait" = Option<f64>, Query, description = "Seconds to wait for a change since the token"),
    ),
    responses(
        (status = 200, description = "The first screen", body = SyncJson),
        (status = 410, description = "Start over", body = crate::problem::ProblemJson, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn sync(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<SyncQuery>,
) -> Answer<Page<SyncJson>> {
    if query.since.is_some() {
        return Err(Problem::new(
            Kind::StartOver,
            "changes since a token are not served yet: sync without since",
        ));
    }
    let sessions = app.views.sessions.get().await?;
    let roaming = app.views.roaming.get().await?;
    let basis = app.reach(&sessions, &query.at).await?;
    let basis = basis.and(app.reach(&roaming, &query.at).await?);
    // Before any row is read: the token leaves nothing out.
    let recent = basis.since.max(Since::ago(app.settings.waits.share));
    let (seen, also_seen) = tokio::join!(
        app.checkpoints(&sessions, recent),
        app.checkpoints(&roaming, recent)
    );
    let (seen, also_seen) = (seen?, also_seen?);
    let next_offsets = least(
        app.log.settings.partitions,
        &[&seen.checkpoints, &also_seen.checkpoints],
    );

    let list = list::load(&app, &sessions, &caller.user, seen.by).await?;
    let mut listed = list.sessions;
    listed.retain(Listed::is_listed);
    let unmuted = listed
        .iter_mut()
        .filter(|listed| !listed.row.muted)
        .collect();
    list::count(&app, &sessions, &caller.user, unmuted).await?;
    let total_unread = total_unread(&listed);
    listed.sort_by_cached_key(screen_key);
    let is_cut = listed.len() > query.sessions;
    listed.truncate(query.sessions);
    list::count(&app, &sessions, &caller.user, listed.iter_mut().collect()).await?;

    let screen = Screen {
        app: &app,
        caller: &caller,
        roaming: &roaming,
        messages: query.messages,
    };
    let (nested, is_behind) = screen.nest(&listed).await?;
    let is_more = is_cut || nested.len() < listed.len();
    let resume = nested
        .len()
        .checked_sub(1)
        .and_then(|last| listed.get(last));
    let token = SyncToken {
        sessions_generation: sessions.no().get(),
        roaming_generation: roaming.no().get(),
        next_offsets,
        resume: resume.filter(|_| is_more).map(screen_key),
    };
    Ok(Page {
        body: SyncJson {
            sessions: nested,
            removed: Vec::new(),
            total_unread,
            more: is_more,
            next: app.cursors(CursorOf::Sync, &caller, "").write(&token),
        },
        is_stale: list.is_stale || basis.is_stale || is_behind,
    })
}

fn screen_key(listed: &Listed) -> ScreenKey {
    ScreenKey {
        has_no_mentions: !listed.has_mentions(),
        list: listed.key(),
    }
}

/// For each partition of the log the least of these checkpoints.
fn least(partitions: u16, of: &[&Checkpoints]) -> Vec<i64> {
    let least_in = |partition: u16| {
        let partition = Partition::new(i32::from(partition));
        let next = of.iter().map(|checkpoints| {
            let checkpoint = checkpoints.get(&partition);
            checkpoint.map_or(NextOffset::START, |checkpoint| checkpoint.next_offset)
        });
        next.min().unwrap_or(NextOffset::START).get()
    };
    (0..partitions).map(least_in).collect()
}

/// Nests messages into sessions.
struct Screen<'a> {
    app: &'a App,
    caller: &'a Caller,
    roaming: &'a Opened<Roaming>,
    /// How many of each session.
    messages: usize,
}

impl Screen<'_> {
    /// The sessions with their messages, as many as a page may hold in bytes; and whether roaming is behind.
    async fn nest(&self, listed: &[Listed]) -> Answer<(Vec<SyncSessionJson>, bool)> {
        let mut target = Target::default();
        for listed in listed
            .iter()
            .filter(|listed| self.carried(listed).is_none())
        {
            target.include(listed.as_of());
        }
        let deadline = self.app.settings.waits.at;
        let is_behind = self
            .app
            .wait(self.roaming, &target, deadline, metrics::WAIT_AT)
            .await
            .is_err();
        let mut nested = Vec::with_capacity(listed.len());
        let mut room_left = self.app.settings.limits.page_bytes;
        for listed in listed.chunks(SESSIONS_AT_ONCE) {
            let messages = listed.iter().map(|listed| self.newest(listed));
            let messages = future::try_join_all(messages).await?;
            for (listed, messages) in listed.iter().zip(messages) {
                let bytes: usize = messages.iter().map(bytes_of).sum();
                if bytes > room_left && !nested.is_empty() {
                    return Ok((nested, is_behind));
                }
                room_left = room_left.saturating_sub(bytes);
                nested.push(SyncSessionJson {
                    session: listed.to_json(),
                    messages,
                    changed: Vec::new(),
                    changed_dropped: false,
                });
            }
        }
        Ok((nested, is_behind))
    }

    /// The newest messages of one session.
    async fn newest(&self, listed: &Listed) -> Answer<Vec<MessageJson>> {
        if let Some(carried) = self.carried(listed) {
            return Ok(carried);
        }
        let reader = Reader {
            app: self.app,
            view: self.roaming,
            conversation: &listed.conversation,
            caller: self.caller,
        };
        match reader.newest(listed.row.last_seq, self.messages).await {
            Ok(messages) => Ok(messages),
            // Roaming does not know of the conversation or of the membership yet: it is behind, as is said.
            Err(problem) if problem.is_refusal() => Ok(Vec::new()),
            Err(problem) => Err(problem),
        }
    }

    /// What of it the session's row carries, if that is all that is asked for.
    fn carried(&self, listed: &Listed) -> Option<Vec<MessageJson>> {
        let row = &listed.row;
        if self.messages == 0 || row.last_seq == Seq::ZERO {
            return Some(Vec::new());
        }
        let newest = row.newest.as_ref().filter(|newest| {
            newest.is_whole && newest.message.seq == row.last_seq && row.shows(newest.message.seq)
        })?;
        (self.messages == 1).then(|| vec![MessageJson::of(&listed.conversation, &newest.message)])
    }
}

fn bytes_of(message: &MessageJson) -> usize {
    message.body.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tidemark_event::{LogTime, Offset};
    use tidemark_fold::sessions::{Session, Tally};
    use tidemark_store::Checkpoint;

    use super::*;
    use crate::{cursor::Cursors, sample};

    fn listed(name: &str, last: u64, mentions: u64, pinned: bool) -> Listed {
        let row = Session {
            pinned,
            tally: Tally {
                mention_count: mentions,
                ..Tally::default()
            },
            ..sample::session(last)
        };
        Listed::fanned_out(Partition::new(0), sample::conversation(name), row)
    }

    #[test]
    fn unread_mentions_come_first_then_the_order_of_the_list() {
        let mut screen = [
            listed("pinned", 1, 0, true),
            listed("new", 9, 0, false),
            listed("mention", 2, 1, false),
            listed("pinned mention", 1, 3, true),
        ];
        screen.sort_by_key(screen_key);
        let names: Vec<&str> = screen.iter().map(|it| it.conversation.as_str()).collect();
        assert_eq!(names, ["pinned mention", "mention", "pinned", "new"]);
    }

    #[test]
    fn a_token_holds_the_least_of_each_partition_and_reads_back() {
        let checkpoints = |next: [Option<i64>; 3]| -> Checkpoints {
            let at = |(partition, next): (i32, Option<i64>)| {
                let checkpoint = Checkpoint {
                    next_offset: NextOffset::after(Offset::new(next? - 1)),
                    last: None,
                    log_time: LogTime::START,
                };
                Some((Partition::new(partition), checkpoint))
            };
            (0..).zip(next).filter_map(at).collect::<BTreeMap<_, _>>()
        };
        let one = checkpoints([Some(5), Some(7), None]);
        let other = checkpoints([Some(6), Some(3), Some(9)]);
        let next_offsets = least(3, &[&one, &other]);
        assert_eq!(next_offsets, [5, 3, 0]);

        let token = SyncToken {
            sessions_generation: 1,
            roaming_generation: 2,
            next_offsets,
            resume: Some(screen_key(&listed("g1", 9, 1, true))),
        };
        let (of, user) = (CursorOf::Sync, sample::user("anna"));
        let cursors = Cursors {
            of,
            log: "log",
            user: &user,
            list: "",
        };
        assert_eq!(cursors.read(&cursors.write(&token)), Ok(token));
    }
}
