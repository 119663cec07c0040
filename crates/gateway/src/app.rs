//! What every request has at hand, and the waits that all of them share.

use std::{future::Future, sync::Arc, time::Duration};

use axum::{
    Json,
    http::HeaderValue,
    response::{IntoResponse, Response},
};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Serialize;
use tidemark_event::{ConversationId, Partition, Position, Seq, partition_of};
use tidemark_fold::{Head, Stored, inbox::InboxExtra, sessions::Block};
use tidemark_store::{GenerationNo, RecordedLog, StoredView};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    append::Appender,
    cursor::{CursorOf, Cursors},
    health::Health,
    metrics,
    problem::{Answer, Kind, Problem, STALE},
    reached::{Seen, Target, TooLate},
    reads::session::SessionsHead,
    request::Caller,
    settings::{GatewaySettings, Waits},
    shared::{SharedReads, Since},
    views::{Opened, Views},
};

/// The state of a gateway.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) settings: GatewaySettings,
    /// The log that the views are folded from.
    pub(crate) log: RecordedLog,
    pub(crate) appender: Appender,
    pub(crate) views: Views,
    pub(crate) reads: Reads,
    pub(crate) health: Health,
    /// Gives the metrics of the whole process.
    pub(crate) metrics: PrometheusHandle,
    /// Cancelled when the gateway is to end: long waits end with it.
    pub(crate) shutdown: CancellationToken,
}

/// A row of a generation, by its conversation.
type Of = (GenerationNo, ConversationId);

/// Messages of a conversation, from a seq to a seq.
type Stretch = (GenerationNo, ConversationId, (Seq, Seq));

/// What requests read together.
#[derive(Debug)]
pub(crate) struct Reads {
    /// Heads of roaming, for whoever reads the same conversation at the same moment.
    pub(crate) roaming_heads: SharedReads<Of, Option<Arc<Head<()>>>>,
    /// Heads of inbox, likewise.
    pub(crate) inbox_heads: SharedReads<Of, Option<Arc<Head<InboxExtra>>>>,
    /// Heads of large conversations, kept a moment for all their members.
    pub(crate) session_heads: SharedReads<Of, Option<Arc<SessionsHead>>>,
    /// Blocks of large conversations by their numbers, likewise.
    pub(crate) blocks: SharedReads<(GenerationNo, ConversationId, u64), Option<Arc<Block>>>,
    /// Stretches of messages, for whoever reads the same page at the same moment.
    pub(crate) messages: SharedReads<Stretch, Arc<Vec<Stored>>>,
}

impl Reads {
    pub(crate) fn new(waits: &Waits) -> Self {
        /// Rows that are remembered: some 10 KiB each at most, and gone after a second.
        const ROWS: usize = 4_096;
        let share = waits.share;
        Self {
            roaming_heads: SharedReads::new(ROWS, Duration::ZERO),
            inbox_heads: SharedReads::new(ROWS, Duration::ZERO),
            session_heads: SharedReads::new(ROWS, share),
            blocks: SharedReads::new(ROWS, share),
            messages: SharedReads::new(ROWS, Duration::ZERO),
        }
    }
}

/// Since when what is shared with others may have been read, and whether a view was there in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basis {
    pub(crate) since: Since,
    pub(crate) is_stale: bool,
}

impl Basis {
    /// Both views.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            since: self.since.max(other.since),
            is_stale: self.is_stale || other.is_stale,
        }
    }
}

impl App {
    /// The partition of the log that a conversation's events are in.
    pub(crate) fn partition_of(&self, conversation: &ConversationId) -> Partition {
        partition_of(conversation, self.appender.partitions())
    }

    /// The cursors of one of the caller's lists.
    pub(crate) fn cursors<'a>(
        &'a self,
        of: CursorOf,
        caller: &'a Caller,
        list: &'a str,
    ) -> Cursors<'a> {
        Cursors {
            of,
            log: self.log.topic_id.as_deref().unwrap_or(&self.log.topic),
            user: &caller.user,
            list,
        }
    }

    /// Waits, as long as a read may, until `view` has reached the positions that the caller holds.
    pub(crate) async fn reach<V: StoredView>(
        &self,
        view: &Opened<V>,
        at: &[Position],
    ) -> Answer<Basis> {
        self.check_positions(at)?;
        if at.is_empty() {
            return Ok(Basis {
                since: Since::ago(self.settings.waits.share),
                is_stale: false,
            });
        }
        let target = Target::after(at);
        let wait = self.settings.waits.at;
        match self.wait(view, &target, wait, metrics::WAIT_AT).await {
            Ok(seen) => Ok(Basis {
                since: seen.by,
                is_stale: false,
            }),
            Err(TooLate) => Ok(Basis {
                since: Since::now(),
                is_stale: true,
            }),
        }
    }

    /// A view's checkpoints, by a read that began at `since` or later.
    pub(crate) async fn checkpoints<V: StoredView>(
        &self,
        view: &Opened<V>,
        since: Since,
    ) -> Answer<Seen> {
        let deadline = Instant::now() + self.settings.waits.at;
        let seen = view.reached.checkpoints(since, deadline).await;
        seen.map_err(|TooLate| {
            Problem::new(
                Kind::StoreUnavailable,
                "the views could not be read in time",
            )
        })
    }

    /// Waits until a view has reached `target`: `wait` at most, and no longer than the gateway runs.
    pub(crate) async fn wait<V: StoredView>(
        &self,
        view: &Opened<V>,
        target: &Target,
        wait: Duration,
        reason: &'static str,
    ) -> Result<Seen, TooLate> {
        let began = Instant::now();
        let outcome = tokio::select! {
            outcome = view.reached.wait(target, began + wait) => outcome,
            () = self.shutdown.cancelled() => Err(TooLate),
        };
        metrics::waited(reason, began.elapsed(), outcome.is_ok());
        outcome
    }

    fn check_positions(&self, at: &[Position]) -> Answer<()> {
        let partitions = i32::from(self.appender.partitions().get());
        match at.iter().find(|at| at.partition.get() >= partitions) {
            Some(at) => Err(Problem::field(
                "at",
                format!("{at} is no position of this log"),
            )),
            None => Ok(()),
        }
    }

    /// Waits until `view` holds the end that a partition of the log has now.
    ///
    /// # Errors
    /// The log did not say where it ends, or the view did not get there in time.
    pub(crate) async fn wait_for_end<V: StoredView>(
        &self,
        view: &Opened<V>,
        partition: Partition,
    ) -> Answer<()> {
        let wait = self.settings.waits.fresh;
        let began = Instant::now();
        let end = match tokio::time::timeout(wait, self.appender.log_end().of(partition)).await {
            Ok(end) => end?,
            Err(_) => {
                return Err(Problem::new(
                    Kind::LogUnavailable,
                    "the log could not be asked for its end in time",
                ));
            }
        };
        let target = Target::up_to(partition, end);
        let left = wait.saturating_sub(began.elapsed());
        match self.wait(view, &target, left, metrics::WAIT_FRESH).await {
            Ok(_) => Ok(()),
            Err(TooLate) => Err(Problem::new(
                Kind::ViewBehind,
                "what is to be refused cannot be judged yet: the view has not reached the log's end",
            )),
        }
    }

    /// Judges by what a view holds. What is refused is judged again once the view holds the log's end as of now: so
    /// nothing is refused on an older view than the caller may know of.
    pub(crate) async fn judged<V: StoredView, T, F: Future<Output = Answer<T>>>(
        &self,
        view: &Opened<V>,
        partition: Partition,
        judge: impl Fn() -> F,
    ) -> Answer<T> {
        match judge().await {
            Err(problem) if problem.is_refusal() => {
                self.wait_for_end(view, partition).await?;
                judge().await
            }
            judged => judged,
        }
    }
}

/// An answer to a read, marked where a view was not there in time.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) body: T,
    pub(crate) is_stale: bool,
}

impl<T: Serialize> IntoResponse for Page<T> {
    fn into_response(self) -> Response {
        let mut response = Json(self.body).into_response();
        if self.is_stale {
            metrics::stale();
            response
                .headers_mut()
                .insert(STALE, HeaderValue::from_static("true"));
        }
        response
    }
}
