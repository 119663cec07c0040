//! The loop that owns a worker's partitions: what is assigned begins, what is revoked comes to rest.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use tidemark_event::Partition;
use tidemark_fold::View;
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::{
    DeadLetters, Projection, Resume, ViewStore,
    log_source::{GroupEvent, LogSource, PartitionStatistics},
    partition::PartitionTask,
    projection::describe,
    retry::Attempts,
    settings::WorkerSettings,
    status::Status,
    worker::KAFKA_PAUSE,
};

/// A partition at work.
struct Running {
    stop: CancellationToken,
    statistics: watch::Sender<Option<PartitionStatistics>>,
    task: JoinHandle<()>,
}

/// The loop that owns the partitions.
pub struct Owner<L: LogSource, S, D> {
    settings: WorkerSettings,
    store: S,
    dead_letters: D,
    status: Status,
    log: L,
    /// Where the jitter of pauses begins.
    jitter: u64,
    events: mpsc::UnboundedReceiver<GroupEvent<L::Queue>>,
    /// Asks the member to leave the group and join it anew.
    rejoin: Arc<Notify>,
    /// Planned and waiting for their queue.
    starting: BTreeMap<Partition, Resume>,
    running: BTreeMap<Partition, Running>,
}

impl<L: LogSource, S, D: DeadLetters> Owner<L, S, D> {
    /// An owner of nothing yet, that hears of its partitions by `events`. It tells by `rejoin` that it is to leave the
    /// group and join it anew.
    pub fn new(
        settings: WorkerSettings,
        store: S,
        dead_letters: D,
        status: Status,
        log: L,
        events: mpsc::UnboundedReceiver<GroupEvent<L::Queue>>,
        rejoin: Arc<Notify>,
    ) -> Self {
        Self {
            settings,
            store,
            dead_letters,
            status,
            log,
            jitter: rand::random(),
            events,
            rejoin,
            starting: BTreeMap::new(),
            running: BTreeMap::new(),
        }
    }

    /// Lets the pauses between attempts follow from `seed`, for runs that are to be repeated exactly.
    #[must_use]
    pub fn with_jitter(mut self, seed: u64) -> Self {
        self.jitter = seed;
        self
    }

    fn attempts(&self, partition: Partition) -> Attempts {
        Attempts::seeded(
            self.jitter
                .wrapping_add(partition.get().unsigned_abs().into()),
        )
    }

    /// What is left of the group's events once the owner has stopped.
    pub(crate) fn into_events(self) -> mpsc::UnboundedReceiver<GroupEvent<L::Queue>> {
        self.events
    }

    /// Serves the group's events until there are no more. Dropped, it leaves its partitions running: they come to rest
    /// by [`stop_all`](Self::stop_all).
    pub async fn serve<V>(&mut self, shutdown: CancellationToken)
    where
        V: View,
        S: ViewStore<V>,
    {
        while let Some(event) = self.events.recv().await {
            match event {
                GroupEvent::Assigned { partitions, starts } => {
                    self.status.assigned(partitions.iter().copied());
                    let planned = tokio::select! {
                        biased;
                        () = shutdown.cancelled() => Vec::new(),
                        planned = self.plan::<V>(&partitions) => planned,
                    };
                    let offsets = planned
                        .iter()
                        .map(|(partition, resume)| (*partition, resume.start))
                        .collect();
                    self.starting.extend(planned);
                    // The callback has gone on without an answer: it will not start what it was not told of.
                    if starts.send(offsets).is_err() {
                        self.starting.clear();
                    }
                }
                GroupEvent::Started { partition, queue } => self.start::<V>(partition, queue),
                GroupEvent::Revoked {
                    partitions,
                    at_rest,
                } => {
                    self.stop(&partitions).await;
                    let _ = at_rest.send(());
                }
                GroupEvent::Statistics(known) => {
                    for statistics in known {
                        if let Some(running) = self.running.get(&statistics.partition) {
                            running.statistics.send_replace(Some(statistics));
                        } else {
                            self.status.update(statistics.partition, |status| {
                                status.log_end = statistics.log_end.or(status.log_end)
                            });
                        }
                    }
                }
            }
        }
    }

    /// Reads the checkpoints and decides where each partition goes on. One that cannot goes to the status.
    async fn plan<V>(&self, partitions: &[Partition]) -> Vec<(Partition, Resume)>
    where
        V: View,
        S: ViewStore<V>,
    {
        let plans = partitions.iter().map(|partition| async move {
            let planned = tokio::time::timeout(
                self.settings.assign_deadline,
                self.plan_one::<V>(*partition),
            )
            .await;
            let stopped = match planned {
                Ok(Ok(resume)) => return Some((*partition, resume)),
                Ok(Err(stopped)) => stopped,
                Err(_) => {
                    // The group is not to wait any longer: the next assignment is another attempt.
                    self.rejoin.notify_one();
                    "neither Kafka nor the store told where to go on: joining the group anew"
                        .to_owned()
                }
            };
            error!(view = %V::NAME, %partition, error = stopped, "the partition stands still");
            self.status
                .update(*partition, |status| status.stopped = Some(stopped));
            None
        });
        futures::future::join_all(plans)
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    async fn plan_one<V>(&self, partition: Partition) -> Result<Resume, String>
    where
        V: View,
        S: ViewStore<V>,
    {
        let attempts = self.attempts(partition);
        let store = &self.store;
        let checkpoint = crate::retry::until_done(&attempts, "read the checkpoint", || {
            store.checkpoint(partition)
        })
        .await
        .map_err(|error| describe(&error))?;
        loop {
            match self.log.bounds(partition).await {
                Ok((start, end)) => {
                    self.status
                        .update(partition, |status| status.log_end = Some(end));
                    return Resume::plan(partition, checkpoint, start, end)
                        .map_err(|error| describe(&error));
                }
                Err(error) => {
                    warn!(%partition, error = describe(&error), "trying again")
                }
            }
            tokio::time::sleep(KAFKA_PAUSE).await;
        }
    }

    fn start<V>(&mut self, partition: Partition, queue: L::Queue)
    where
        V: View,
        S: ViewStore<V>,
    {
        let Some(resume) = self.starting.remove(&partition) else {
            return;
        };
        let (statistics, known) = watch::channel(None);
        let settings = self.settings.clone();
        // Each partition has its share of the budget, as if all of them were here.
        let share =
            settings.state_budget_bytes / usize::from(self.store.log_settings().partitions.max(1));
        let projection = Projection::new(
            partition,
            resume.checkpoint,
            self.store.clone(),
            self.dead_letters.clone(),
        )
        .with_checkpoint_interval(settings.checkpoint_interval)
        .with_state_budget(share);
        let task = PartitionTask {
            partition,
            resume,
            projection,
            queue,
            log: self.log.clone(),
            statistics: known,
            status: self.status.clone(),
            attempts: self.attempts(partition),
            rejoin: self.rejoin.clone(),
        };
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let status = self.status.clone();
        let task = tokio::spawn(async move {
            let work = AssertUnwindSafe(task.run(&settings, stopped));
            if work.catch_unwind().await.is_err() {
                // The panic itself has been reported where it happened. Nothing that it left half-done is used again.
                let why =
                    "a fault in this program ended the work on it: see the log, and report it";
                error!(view = %V::NAME, %partition, error = why, "the partition stands still");
                status.update(partition, |status| status.stopped = Some(why.to_owned()));
            }
        });
        self.running.insert(
            partition,
            Running {
                stop,
                statistics,
                task,
            },
        );
    }

    /// Brings partitions to rest: each flushes what it has folded, or drops it.
    async fn stop(&mut self, partitions: &[Partition]) {
        let mut stopping = Vec::new();
        for partition in partitions {
            self.starting.remove(partition);
            if let Some(running) = self.running.remove(partition) {
                running.stop.cancel();
                stopping.push((*partition, running.task));
            }
        }
        let deadline = tokio::time::Instant::now() + self.settings.stop_deadline;
        for (partition, mut task) in stopping {
            if tokio::time::timeout_at(deadline, &mut task).await.is_err() {
                warn!(%partition, "the partition did not come to rest in time and was dropped");
                task.abort();
            }
        }
        for partition in partitions {
            self.status.revoked(*partition);
        }
    }

    /// Brings all partitions to rest, within the stop deadline.
    pub async fn stop_all(&mut self) {
        let partitions: Vec<Partition> = self.running.keys().copied().collect();
        self.stop(&partitions).await;
    }
}
