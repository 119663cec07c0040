//! Waits until a view has folded up to some places of the log.
//!
//! Checkpoints are read by one task a view, and only while somebody waits: every few milliseconds, whoever and however
//! many they are. So a wait costs the store nothing of its own. What was read stays known: a checkpoint of a generation
//! never goes back, so one seen once counts for ever.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use tidemark_event::{NextOffset, Partition, Position};
use tidemark_store::{Checkpoint, StoreError};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::Instant,
};

use crate::{problem::chain, shared::Since};

/// How far a generation has come in each partition. A partition that it has nothing of is absent.
pub(crate) type Checkpoints = BTreeMap<Partition, Checkpoint>;

/// Reads a generation's checkpoints.
pub(crate) type ReadCheckpoints =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Checkpoints, StoreError>> + Send + Sync>;

/// Places that a view is to have folded: for each partition the first that need not be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Target(BTreeMap<Partition, NextOffset>);

impl Target {
    /// All of these events.
    pub(crate) fn after(positions: &[Position]) -> Self {
        let mut target = Self::default();
        for position in positions {
            target.include(*position);
        }
        target
    }

    /// This event too.
    pub(crate) fn include(&mut self, position: Position) {
        self.add(position.partition, NextOffset::after(position.offset));
    }

    /// Everything of a partition that is below `next`.
    pub(crate) fn up_to(partition: Partition, next: NextOffset) -> Self {
        Self(BTreeMap::from([(partition, next)]))
    }

    pub(crate) fn add(&mut self, partition: Partition, next: NextOffset) {
        let wanted = self.0.entry(partition).or_insert(next);
        *wanted = next.max(*wanted);
    }

    /// Whether `checkpoints` are all there.
    pub(crate) fn is_reached(&self, checkpoints: &Checkpoints) -> bool {
        self.0.iter().all(|(partition, wanted)| {
            let reached = checkpoints.get(partition);
            reached.map_or(NextOffset::START, |checkpoint| checkpoint.next_offset) >= *wanted
        })
    }
}

/// What was read of a generation's checkpoints, and when.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The read began then: the checkpoints are no older.
    began: Since,
    /// The read had ended by then: what is read from now on shows at least this.
    pub(crate) by: Since,
    pub(crate) checkpoints: Arc<Checkpoints>,
}

/// Knows how far one generation of a view has come.
pub(crate) struct Reached {
    seen: watch::Receiver<Option<Seen>>,
    waiters: Arc<Waiters>,
    task: AbortHandle,
}

impl std::fmt::Debug for Reached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reached").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Waiters {
    count: AtomicUsize,
    more: Notify,
}

/// Somebody who waits; counted while it lives.
struct Waiting(Arc<Waiters>);

impl Waiters {
    fn enter(self: &Arc<Self>) -> Waiting {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.more.notify_one();
        Waiting(Arc::clone(self))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Reached {
    /// Starts the task, which reads by `read` every `poll` while somebody waits. It ends with this value.
    pub(crate) fn new(read: ReadCheckpoints, poll: Duration) -> Self {
        let (send, seen) = watch::channel(None);
        let waiters = Arc::<Waiters>::default();
        let task = tokio::spawn(watch_checkpoints(read, poll, Arc::clone(&waiters), send));
        Self {
            seen,
            waiters,
            task: task.abort_handle(),
        }
    }

    /// Waits for `target` until `deadline`. Returns when it was reached, or what was seen last.
    ///
    /// # Errors
    /// The deadline passed; or nothing is to be waited for any more.
    pub(crate) async fn wait(&self, target: &Target, deadline: Instant) -> Result<Seen, TooLate> {
        let is_reached = |seen: &Option<Seen>| {
            seen.as_ref()
                .is_some_and(|seen| target.is_reached(&seen.checkpoints))
        };
        let mut seen = self.seen.clone();
        if let Some(seen) = seen.borrow().as_ref()
            && target.is_reached(&seen.checkpoints)
        {
            return Ok(seen.clone());
        }
        let _waiting = self.waiters.enter();
        let reached = tokio::time::timeout_at(deadline, seen.wait_for(is_reached)).await;
        match reached {
            Ok(Ok(seen)) => seen.clone().ok_or(TooLate),
            Ok(Err(_)) | Err(_) => Err(TooLate),
        }
    }

    /// The checkpoints, as of a read that began at `since` or later, and ended before `deadline`.
    pub(crate) async fn checkpoints(
        &self,
        since: Since,
        deadline: Instant,
    ) -> Result<Seen, TooLate> {
        let mut seen = self.seen.clone();
        let is_recent = |seen: &Option<Seen>| seen.as_ref().is_some_and(|seen| seen.began >= since);
        if let Some(seen) = seen.borrow().as_ref().filter(|seen| seen.began >= since) {
            return Ok(seen.clone());
        }
        let _waiting = self.waiters.enter();
        match tokio::time::timeout_at(deadline, seen.wait_for(is_recent)).await {
            Ok(Ok(seen)) => seen.clone().ok_or(TooLate),
            Ok(Err(_)) | Err(_) => Err(TooLate),
        }
    }
}

impl Drop for Reached {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The view was not there in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLate;

async fn watch_checkpoints(
    read: ReadCheckpoints,
    poll: Duration,
    waiters: Arc<Waiters>,
    send: watch::Sender<Option<Seen>>,
) {
    /// How long a store that fails is left alone.
    const BACKOFF: Duration = Duration::from_millis(200);

    loop {
        while waiters.count.load(Ordering::SeqCst) == 0 {
            waiters.more.notified().await;
        }
        let began = Since::now();
        match read().await {
            Ok(checkpoints) => {
                let checkpoints = Arc::new(checkpoints);
                let by = Since::now();
                send.send_replace(Some(Seen {
                    began,
                    by,
                    checkpoints,
                }));
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "checkpoints could not be read");
                tokio::time::sleep(BACKOFF).await;
            }
        }
        tokio::time::sleep(poll).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt;
    use tidemark_event::{LogTime, Offset};

    use super::*;

    const POLL: Duration = Duration::from_millis(10);

    /// A generation whose only partition, 0, is where the test puts it.
    #[derive(Clone, Default)]
    struct View {
        next: Arc<Mutex<i64>>,
        reads: Arc<AtomicUsize>,
    }

    impl View {
        fn goes_to(&self, next: i64) {
            *self.next.lock().unwrap() = next;
        }

        fn reached(&self) -> Reached {
            let view = self.clone();
            let read: ReadCheckpoints = Arc::new(move || {
                view.reads.fetch_add(1, Ordering::Relaxed);
                let checkpoint = Checkpoint {
                    next_offset: NextOffset::new(*view.next.lock().unwrap()),
                    last: None,
                    log_time: LogTime::START,
                };
                async move { Ok(BTreeMap::from([(Partition::new(0), checkpoint)])) }.boxed()
            });
            Reached::new(read, POLL)
        }
    }

    fn event_at(partition: i32, offset: i64) -> Target {
        Target::after(&[Position {
            partition: Partition::new(partition),
            offset: Offset::new(offset),
        }])
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(2)
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_on_when_the_view_is_there() {
        let view = View::default();
        let reached = view.reached();
        let target = event_at(0, 7);
        let (waited, ()) = tokio::join!(reached.wait(&target, soon()), async {
            tokio::time::sleep(POLL * 5).await;
            view.goes_to(8);
        });
        assert!(waited.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_event_itself_must_be_folded_and_its_partition_known() {
        let view = View::default();
        view.goes_to(7);
        let reached = view.reached();
        assert!(reached.wait(&event_at(0, 6), soon()).await.is_ok());
        assert!(reached.wait(&event_at(0, 7), soon()).await.is_err());
        assert!(reached.wait(&event_at(1, 0), soon()).await.is_err());
        assert!(reached.wait(&Target::default(), soon()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_wait_cost_what_one_does_and_nobody_nothing() {
        let view = View::default();
        let reached = view.reached();
        let target = event_at(0, 7);
        let deadline = Instant::now() + POLL * 10;
        futures::future::join_all((0..500).map(|_| reached.wait(&target, deadline))).await;
        let reads = view.reads.load(Ordering::Relaxed);
        assert!((9..=12).contains(&reads), "{reads}");
        tokio::time::sleep(POLL * 100).await;
        assert!(view.reads.load(Ordering::Relaxed) <= reads + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn checkpoints_are_as_recent_as_asked() {
        let view = View::default();
        let reached = view.reached();
        let first = reached.checkpoints(Since::now(), soon()).await.unwrap();
        tokio::time::sleep(POLL * 3).await;
        view.goes_to(3);
        let same = reached.checkpoints(first.began, soon()).await.unwrap();
        assert_eq!(same.checkpoints, first.checkpoints);
        let later = reached.checkpoints(Since::now(), soon()).await.unwrap();
        assert!(event_at(0, 2).is_reached(&later.checkpoints));
    }
}
