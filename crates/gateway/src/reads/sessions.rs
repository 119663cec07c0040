//! The list of sessions.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Paging,
    list::{self, UserList},
    session::{ListKey, Listed, SessionJson},
};
use crate::{
    app::{App, Page},
    cursor::CursorOf,
    problem::Answer,
    request::{Caller, FromParams, Params, Query},
};

/// Which sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    /// Something is unread, or marked so.
    Unread,
    /// Something unread mentions the caller by name.
    Mentions,
}

/// The query of the list.
#[derive(Debug)]
pub(crate) struct ListSessions {
    paging: Paging,
    filter: Option<Filter>,
}

impl FromParams for ListSessions {
    fn take(params: &mut Params) -> Self {
        let words = [("unread", Filter::Unread), ("mentions", Filter::Mentions)];
        Self {
            paging: Paging::take(params, 20, 200),
            filter: params.word("filter", &words),
        }
    }
}

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Sessions)]
pub(crate) struct SessionsJson {
    /// Pinned ones first, then by newest activity, then by id.
    sessions: Vec<SessionJson>,
    /// Where the list goes on; null at its end.
    next_cursor: Option<String>,
    /// What is unread in all listed sessions together, muted ones left out.
    total_unread: u64,
}

/// The caller's sessions
#[utoipa::path(
    get,
    path = "/sessions",
    operation_id = "list_sessions",
    tag = "Sessions",
    params(
        ("limit" = Option<usize>, Query, description = "How many at most: 20 if absent, up to 200"),
        ("cursor" = Option<String>, Query, description = "The next_cursor of the page before"),
        ("filter" = Option<String>, Query, description = "`unread` or `mentions`: only such"),
    ),
    responses((status = 200, description = "A page of them", body = SessionsJson)),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(query): Query<ListSessions>,
) -> Answer<Page<SessionsJson>> {
    let Paging { limit, cursor, at } = query.paging;
    let cursors = app.cursors(
        CursorOf::Sessions,
        &caller,
        query.filter.map_or("", Filter::name),
    );
    let after: Option<ListKey> = match cursor {
        Some(text) => Some(cursors.read(&text)?),
        None => None,
    };
    let view = app.views.sessions.get().await?;
    let basis = app.reach(&view, &at).await?;
    let UserList {
        mut sessions,
        is_stale,
    } = list::load(&app, &view, &caller.user, basis.since).await?;
    sessions.retain(Listed::is_listed);
    let counts = |listed: &Listed| query.filter == Some(Filter::Unread) || !listed.row.muted;
    let to_count = sessions
        .iter_mut()
        .filter(|listed| counts(listed))
        .collect();
    list::count(&app, &view, &caller.user, to_count).await?;
    let total_unread = total_unread(&sessions);
    if let Some(filter) = query.filter {
        sessions.retain(|listed| filter.takes(listed));
    }
    let (mut sessions, next) = page(sessions, after.as_ref(), limit);
    list::count(&app, &view, &caller.user, sessions.iter_mut().collect()).await?;
    Ok(Page {
        body: SessionsJson {
            sessions: sessions.iter().map(Listed::to_json).collect(),
            next_cursor: next.map(|key| cursors.write(&key)),
            total_unread,
        },
        is_stale: is_stale || basis.is_stale,
    })
}

impl Filter {
    const fn name(self) -> &'static str {
        match self {
            Self::Unread => "unread",
            Self::Mentions => "mentions",
        }
    }

    /// Whether a session that is counted, as far as this filter asks for it, is one of these.
    fn takes(self, listed: &Listed) -> bool {
        match self {
            Self::Unread => listed.unread() > 0 || listed.row.marked_unread,
            Self::Mentions => listed.has_mentions(),
        }
    }
}

/// What is unread in unmuted sessions together; those are counted.
pub(super) fn total_unread(sessions: &[Listed]) -> u64 {
    let counted = sessions.iter().filter(|listed| !listed.row.muted);
    counted.map(Listed::unread).sum()
}

/// The `limit` sessions that come after a place in the list, in its order, and the place to go on after them.
fn page(
    mut sessions: Vec<Listed>,
    after: Option<&ListKey>,
    limit: usize,
) -> (Vec<Listed>, Option<ListKey>) {
    if let Some(after) = after {
        sessions.retain(|listed| listed.key() > *after);
    }
    sessions.sort_by_cached_key(Listed::key);
    let is_more = sessions.len() > limit;
    sessions.truncate(limit);
    let next = sessions.last().filter(|_| is_more).map(Listed::key);
    (sessions, next)
}

#[cfg(test)]
mod tests {
    use tidemark_event::Partition;
    use tidemark_fold::sessions::{Session, Tally};

    use super::*;
    use crate::sample;

    fn listed(name: &str, row: Session) -> Listed {
        Listed::fanned_out(Partition::new(0), sample::conversation(name), row)
    }

    fn unread(unread: u64) -> Session {
        Session {
            tally: Tally {
                unread,
                ..Tally::default()
            },
            ..sample::session(9)
        }
    }

    #[test]
    fn pages_neither_repeat_nor_skip() {
        let sessions: Vec<Listed> = (0..25)
            .map(|number| {
                let row = Session {
                    pinned: number % 5 == 0,
                    ..sample::session(1 + number % 3)
                };
                listed(&format!("g{number:02}"), row)
            })
            .collect();
        let (all, _) = page(sessions.clone(), None, 100);
        let all: Vec<ListKey> = all.iter().map(Listed::key).collect();
        let mut paged = Vec::new();
        let mut after = None;
        loop {
            let (sessions, next) = page(sessions.clone(), after.as_ref(), 10);
            paged.extend(sessions.iter().map(Listed::key));
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(paged, all);
        assert_eq!(all.len(), 25);
    }

    #[test]
    fn muting_takes_out_of_the_total_alone() {
        let muted = Session {
            muted: true,
            ..unread(4)
        };
        let sessions = [listed("a", unread(6)), listed("b", muted)];
        assert_eq!(total_unread(&sessions), 6);
        assert_eq!(sessions[1].to_json(), {
            let mut shown = listed(
                "b",
                Session {
                    muted: true,
                    ..unread(4)
                },
            );
            shown.row.muted = true;
            shown.to_json()
        });
    }

    #[test]
    fn filters_take_what_is_unread_marked_or_mentions() {
        let marked = Session {
            marked_unread: true,
            ..unread(0)
        };
        let mentioned = Session {
            tally: Tally {
                unread: 1,
                mention_count: 1,
                mentions: vec![sample::seq(9)],
                mentioned_all: None,
            },
            ..unread(1)
        };
        let rows = [unread(0), unread(1), marked, mentioned];
        let takes = |filter: Filter| rows.clone().map(|row| filter.takes(&listed("g", row)));
        assert_eq!(takes(Filter::Unread), [false, true, true, true]);
        assert_eq!(takes(Filter::Mentions), [false, false, false, true]);
    }
}
