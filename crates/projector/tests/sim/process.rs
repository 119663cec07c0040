//! One simulated worker process: the production loop in a runtime of its own, whose clock moves only when it is run.
//!
//! So a crash is dropping the runtime, a freeze is not running it, and a woken process finds that time has leapt.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc as sync_mpsc,
    },
    time::Duration,
};

use tidemark_event::{NextOffset, Offset, Partition, kafka::KafkaSettings};
use tidemark_fold::FOLD_VERSION;
use tidemark_projector::{
    BatchSettings, GroupEvent, KeepRefusals, Owner, PartitionStatistics, Status, WorkerSettings,
};
use tidemark_store::{FoldVersion, GenerationNo, Store, StoredView, double::Cluster};
use tokio::{
    runtime::Runtime,
    sync::{Notify, mpsc},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::{
    random::Random,
    source::{Feed, SimLetters, SimQueue, SimSource, SimWire},
    world::World,
};

/// A worker process.
pub(crate) struct Process {
    pub(crate) id: usize,
    runtime: Runtime,
    events: mpsc::UnboundedSender<GroupEvent<SimQueue>>,
    shutdown: CancellationToken,
    life: JoinHandle<()>,
    asks_to_rejoin: Arc<AtomicBool>,
    pub(crate) status: Status,
    /// Queues of what it believes to have.
    pub(crate) feeds: BTreeMap<Partition, Arc<Feed>>,
    /// Ends it had come upon in partitions that were taken away: statistics may still tell of them.
    old_ends: BTreeMap<Partition, NextOffset>,
    /// Not run before this step.
    pub(crate) frozen_until: Option<usize>,
    pub(crate) is_stopping: bool,
}

impl Process {
    /// Starts a process that works on the view's first generation in `cluster`.
    pub(crate) fn start<V: StoredView + KeepRefusals>(
        id: usize,
        world: &World,
        cluster: &Cluster,
        random: &mut Random,
    ) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let wire = Arc::new(SimWire {
            world: world.clone(),
            process: id,
            cluster: cluster.clone(),
            is_scheduled: AtomicBool::new(false),
        });
        let store = Store::over(cluster, KEYSPACE, wire.clone(), 256);
        let open = store.open::<V>(GenerationNo::FIRST, FoldVersion::new(FOLD_VERSION));
        let generation = runtime.block_on(open).unwrap();
        wire.is_scheduled.store(true, Ordering::Relaxed);

        let (events, received) = mpsc::unbounded_channel();
        let (shutdown, rejoin) = (CancellationToken::new(), Arc::new(Notify::new()));
        let status = Status::new(V::NAME);
        let mut owner = Owner::new(
            settings(random),
            generation,
            SimLetters {
                world: world.clone(),
                process: id,
            },
            status.clone(),
            SimSource {
                world: world.clone(),
                process: id,
            },
            received,
            rejoin.clone(),
        )
        .with_jitter(random.next());
        let asked = shutdown.clone();
        let life = runtime.spawn(async move {
            tokio::select! {
                biased;
                () = asked.cancelled() => {}
                () = owner.serve::<V>(asked.clone()) => {}
            }
            owner.stop_all().await;
        });
        let asks_to_rejoin = Arc::new(AtomicBool::new(false));
        let asks = asks_to_rejoin.clone();
        runtime.spawn(async move {
            loop {
                rejoin.notified().await;
                asks.store(true, Ordering::Relaxed);
            }
        });
        Self {
            id,
            runtime,
            events,
            shutdown,
            life,
            asks_to_rejoin,
            status,
            feeds: BTreeMap::new(),
            old_ends: BTreeMap::new(),
            frozen_until: None,
            is_stopping: false,
        }
    }

    /// Lets it do whatever it can, and then lets this much time pass for it.
    pub(crate) fn run(&self, time: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(time).await });
    }

    /// It goes on after a freeze: its timers find that all the time has passed at once.
    pub(crate) fn wake(&mut self, slept: Duration) {
        self.frozen_until = None;
        self.runtime
            .block_on(async { tokio::time::advance(slept).await });
    }

    pub(crate) fn is_awake(&self) -> bool {
        self.frozen_until.is_none()
    }

    /// Asks it to stop, as SIGTERM does.
    pub(crate) fn stop(&mut self) {
        self.is_stopping = true;
        self.shutdown.cancel();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.life.is_finished()
    }

    /// Whether it has asked, since it was last looked at, to leave the group and join it anew.
    pub(crate) fn takes_wish_to_rejoin(&self) -> bool {
        self.asks_to_rejoin.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn assign(
        &self,
        partition: Partition,
    ) -> sync_mpsc::Receiver<Vec<(Partition, Offset)>> {
        let (starts, answer) = sync_mpsc::channel();
        self.tell(GroupEvent::Assigned {
            partitions: vec![partition],
            starts,
        });
        answer
    }

    /// Hands it the queue of a partition. Statistics that were made before may come after.
    pub(crate) fn begin(&mut self, partition: Partition, start: Offset, tells_old_end: bool) {
        let feed = Feed::from(partition, start);
        self.feeds.insert(partition, feed.clone());
        self.tell(GroupEvent::Started {
            partition,
            queue: SimQueue(feed),
        });
        if tells_old_end && let Some(end) = self.old_ends.get(&partition) {
            self.tell(GroupEvent::Statistics(vec![PartitionStatistics {
                partition,
                log_end: Some(*end),
                drained_to: Some(*end),
            }]));
        }
    }

    pub(crate) fn revoke(&self, partitions: Vec<Partition>) -> sync_mpsc::Receiver<()> {
        let (at_rest, answer) = sync_mpsc::channel();
        self.tell(GroupEvent::Revoked {
            partitions,
            at_rest,
        });
        answer
    }

    /// The queue of a partition that has been revoked is closed.
    pub(crate) fn close(&mut self, partition: Partition) {
        if let Some(feed) = self.feeds.remove(&partition)
            && let Some(end) = feed.end()
        {
            self.old_ends.insert(partition, end);
        }
    }

    pub(crate) fn tell_statistics(&self, world: &World) {
        let known = self.feeds.values().map(|feed| feed.statistics(world));
        self.tell(GroupEvent::Statistics(known.collect()));
    }

    fn tell(&self, event: GroupEvent<SimQueue>) {
        // A process that has stopped hears nothing.
        let _ = self.events.send(event);
    }

    /// Why a partition stands still, if one does that should not.
    pub(crate) fn stands_still(&self) -> Option<String> {
        let partitions = self.status.partitions();
        let mut stopped = partitions
            .values()
            .filter_map(|partition| partition.stopped.clone());
        stopped.find(|why| !is_passing(why))
    }

    pub(crate) fn is_overtaken(&self) -> bool {
        let partitions = self.status.partitions();
        partitions
            .values()
            .any(|partition| partition.stopped.as_deref().is_some_and(is_passing))
    }
}

/// Another worker goes on, or the partition is about to be assigned anew.
fn is_passing(why: &str) -> bool {
    why.contains("another worker has the partition") || why.contains("joining the group anew")
}

/// The keyspace of every simulated store.
pub(crate) const KEYSPACE: &str = "sim";

/// What an operator may set, drawn so that every path is walked.
fn settings(random: &mut Random) -> WorkerSettings {
    let mut settings = WorkerSettings::new(KafkaSettings {
        bootstrap_servers: String::new(),
        properties: BTreeMap::new(),
    });
    settings.batch = BatchSettings {
        records: 1 + random.below(40),
        bytes: *random.one_of(&[600, 6_000, 4 << 20]),
        linger: *random.one_of(&[Duration::from_millis(2), Duration::from_millis(40)]),
    };
    settings.state_budget_bytes = *random.one_of(&[0, 20_000, 256 << 20]);
    settings.stop_deadline = *random.one_of(&[Duration::from_millis(20), Duration::from_secs(20)]);
    settings.checkpoint_interval = *random.one_of(&[
        Duration::ZERO,
        Duration::from_secs(1),
        Duration::from_secs(60),
    ]);
    settings
}
