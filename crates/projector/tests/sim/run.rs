//! One run: a scheduler that draws every step from the seed, until the log is folded and every fault is over.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use tidemark_event::{ConversationId, NextOffset, Offset, Partition, encode};
use tidemark_model::{Logged, Model, Verdict, generate::Cast};
use tidemark_projector::{Attempts, ProjectError, Projection, RawRecord, Resume, ViewStore};
use tidemark_proof::{Checked, Rules, Shelf};

use crate::{
    random::Random,
    store::SimStore,
    world::{Failed, PartitionWorld, Pending, World},
};

const PARTITIONS: i32 = 2;
/// Faults stop after so many steps: from then on everything must come right by itself.
const FAULTY_STEPS: usize = 600;
/// So many steps after the last fault everything must have come right.
const QUIET_STEPS: usize = 20_000;

/// So many steps without a request mean that nobody has anything left to do.
const REST_STEPS: usize = 100;

/// What a run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) runs: u64,
    pub(crate) steps: u64,
    pub(crate) events: u64,
    pub(crate) crashes: u64,
    pub(crate) wakings: u64,
    pub(crate) lost_answers: u64,
    pub(crate) late_writes: u64,
    pub(crate) overtaken: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.events += other.events;
        self.crashes += other.crashes;
        self.wakings += other.wakings;
        self.lost_answers += other.lost_answers;
        self.late_writes += other.late_writes;
        self.overtaken += other.overtaken;
    }
}

/// A worker on one partition, at some await.
struct Working {
    id: usize,
    partition: Partition,
    future: Pin<Box<dyn Future<Output = Result<(), ProjectError>>>>,
    /// Frozen until this step; it no longer owns the partition.
    frozen_until: Option<usize>,
}

/// How often each fault happens, in percent of the steps, drawn for each run.
struct Faults {
    crash: u64,
    freeze: u64,
    fail: u64,
}

struct Run<V: Checked> {
    random: Random,
    world: Arc<Mutex<World<V>>>,
    rules: Rules,
    workers: Vec<Working>,
    next_worker: usize,
    tally: Tally,
    tells: bool,
    step: usize,
    /// Steps in a row without a request: woken workers, too, have come to their ends.
    at_rest: usize,
}

/// Runs one seed, and panics where the views are not what the log says.
pub(crate) fn run<V: Checked>(seed: u64, tells: bool) -> Tally {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut run = Run::<V>::new(seed, tells);
        run.schedule().await;
        run.check();
        run.tally
    })
}

impl<V: Checked> Run<V> {
    fn new(seed: u64, tells: bool) -> Self {
        let mut random = Random::new(seed);
        let length = 100 + random.below(100);
        let partitions = (0..PARTITIONS).map(|number| {
            let partition = Partition::new(number);
            let log = log_of(partition, seed * 2 + number as u64, length);
            let records = log.iter().map(raw).collect();
            let world = PartitionWorld {
                logged: log,
                records,
                shelf: Shelf::default(),
                checkpoint: None,
                letters: std::collections::BTreeSet::new(),
                late: Vec::new(),
            };
            (partition, world)
        });
        let partitions: BTreeMap<_, _> = partitions.collect();
        Self {
            random,
            world: Arc::new(Mutex::new(World {
                partitions,
                pending: Vec::new(),
            })),
            rules: Rules::of(&Cast::SMALL.settings, Cast::SMALL.fan_out_limit),
            workers: Vec::new(),
            next_worker: 0,
            tally: Tally {
                runs: 1,
                events: 2 * length as u64,
                ..Tally::default()
            },
            tells,
            step: 0,
            at_rest: 0,
        }
    }

    async fn schedule(&mut self) {
        let faults = Faults {
            crash: self.random.next() % 4,
            freeze: self.random.next() % 4,
            fail: self.random.next() % 12,
        };
        loop {
            self.step += 1;
            let is_faulty = self.step < FAULTY_STEPS;
            assert!(
                self.step < FAULTY_STEPS + QUIET_STEPS,
                "the views do not come right once the faults are over"
            );
            self.man_partitions();
            self.disturb(is_faulty.then_some(&faults));
            self.poll_one().await;
            self.answer_one(is_faulty.then_some(&faults));
            if !is_faulty && self.is_done() {
                break;
            }
        }
        self.tally.steps = self.step as u64;
    }

    /// Every partition has an owner that is not frozen.
    fn man_partitions(&mut self) {
        for number in 0..PARTITIONS {
            let partition = Partition::new(number);
            let is_manned =
                |worker: &Working| worker.partition == partition && worker.frozen_until.is_none();
            if self.workers.iter().any(is_manned) {
                continue;
            }
            let id = self.next_worker;
            self.next_worker += 1;
            let store = SimStore {
                world: self.world.clone(),
                worker: id,
                partition,
                rules: self.rules,
            };
            let future = Box::pin(work(store, self.random.next()));
            self.tell(|| format!("worker {id} takes partition {partition}"));
            self.workers.push(Working {
                id,
                partition,
                future,
                frozen_until: None,
            });
        }
    }

    /// Crashes, freezes and wakes workers.
    fn disturb(&mut self, faults: Option<&Faults>) {
        for worker in &mut self.workers {
            // A woken worker goes on as a zombie beside the new owner, until it ends by itself.
            if worker.frozen_until.is_some_and(|until| until == self.step) {
                self.tally.wakings += 1;
            }
        }
        let Some(faults) = faults else { return };
        if self.random.chance(faults.crash) {
            let index = self.random.below(self.workers.len());
            let crashed = self.workers.swap_remove(index);
            self.tell(|| {
                format!(
                    "worker {} of partition {} crashes",
                    crashed.id, crashed.partition
                )
            });
            self.tally.crashes += 1;
            drop(crashed.future);
            self.abandon(crashed.id);
        }
        if !self.workers.is_empty() && self.random.chance(faults.freeze) {
            let index = self.random.below(self.workers.len());
            let until = self.step + 1 + self.random.below(150);
            let worker = &mut self.workers[index];
            if worker.frozen_until.is_none() {
                worker.frozen_until = Some(until);
                let (id, partition) = (worker.id, worker.partition);
                self.tell(|| {
                    format!("worker {id} of partition {partition} is frozen until step {until}")
                });
            }
        }
    }

    /// What a crashed worker had sent may still arrive, in part or late.
    fn abandon(&mut self, id: usize) {
        let mut world = self.world.lock().unwrap();
        let pending = std::mem::take(&mut world.pending);
        for pending in pending {
            if pending.worker != id {
                world.pending.push(pending);
            } else if let Some(partition) = world.partitions.get_mut(&pending.partition) {
                partition.serve_in_part(pending.request, &mut self.random);
            }
        }
    }

    /// Lets one worker that is not frozen run to its next request.
    async fn poll_one(&mut self) {
        let step = self.step;
        let awake = |worker: &Working| worker.frozen_until.is_none_or(|until| until <= step);
        let awake: Vec<usize> = self
            .workers
            .iter()
            .enumerate()
            .filter(|(_, worker)| awake(worker))
            .map(|(index, _)| index)
            .collect();
        if awake.is_empty() {
            return;
        }
        let index = awake[self.random.below(awake.len())];
        let worker = &mut self.workers[index];
        let polled = std::future::poll_fn(|context: &mut Context<'_>| {
            Poll::Ready(worker.future.as_mut().poll(context))
        });
        let Poll::Ready(ended) = polled.await else {
            // Whoever waits before trying again waits in the runtime's own time.
            if self.random.chance(10) {
                tokio::time::advance(Duration::from_secs(5)).await;
            }
            return;
        };
        let ended_worker = self.workers.swap_remove(index);
        match ended {
            Ok(()) => {}
            Err(ProjectError::Overtaken { own, stored }) => {
                self.tally.overtaken += 1;
                self.tell(|| {
                    format!(
                        "worker {} at {own} finds itself overtaken by {stored}",
                        ended_worker.id
                    )
                });
            }
            Err(error) => panic!(
                "worker {} of partition {}: {error}",
                ended_worker.id, ended_worker.partition
            ),
        }
    }

    /// Answers one request: whole, or with a fault.
    fn answer_one(&mut self, faults: Option<&Faults>) {
        let world = self.world.clone();
        let mut world = world.lock().unwrap();
        for partition in world.partitions.values_mut() {
            let chance = if faults.is_some() { 5 } else { 50 };
            if self.random.chance(chance) && partition.arrive(&mut self.random) {
                self.tally.late_writes += 1;
            }
        }
        self.at_rest = if world.pending.is_empty() {
            self.at_rest + 1
        } else {
            0
        };
        if world.pending.is_empty() {
            return;
        }
        let index = self.random.below(world.pending.len());
        let Pending {
            worker,
            partition,
            request,
            answer,
        } = world.pending.swap_remove(index);
        let served = world.partitions.get_mut(&partition).unwrap();
        if faults.is_some_and(|faults| self.random.chance(faults.fail)) {
            self.tally.lost_answers += 1;
            if self.random.chance(50) {
                served.serve(request);
            } else {
                served.serve_in_part(request, &mut self.random);
            }
            self.tell(|| format!("an answer to worker {worker} is lost"));
            let _ = answer.send(Err(Failed));
        } else {
            let _ = answer.send(Ok(served.serve(request)));
        }
        served.check_on_the_way(partition);
    }

    /// Everything is folded, stored and at rest.
    fn is_done(&self) -> bool {
        let world = self.world.lock().unwrap();
        let is_stored = |world: &PartitionWorld<V>| {
            let end = world
                .records
                .last()
                .map_or(NextOffset::START, |last| NextOffset::after(last.offset));
            world.late.is_empty()
                && world
                    .checkpoint
                    .is_some_and(|checkpoint| checkpoint.next_offset == end)
        };
        let step = self.step;
        let all_awake = self
            .workers
            .iter()
            .all(|worker| worker.frozen_until.is_none_or(|until| until <= step));
        all_awake && self.at_rest > REST_STEPS && world.partitions.values().all(is_stored)
    }

    fn check(&self) {
        let world = self.world.lock().unwrap();
        for (partition, world) in &world.partitions {
            let model = Model::of(&world.logged, &Cast::SMALL.settings);
            let users = Cast::SMALL.users();
            tidemark_proof::check(&world.shelf, &model, &users, &self.rules.generation);
            let is_refused = |logged: &&Logged| {
                matches!(model.verdict(logged.offset), Some(Verdict::Refused(_)))
            };
            let refused: std::collections::BTreeSet<Offset> = world
                .logged
                .iter()
                .filter(is_refused)
                .map(|logged| logged.offset)
                .collect();
            assert_eq!(
                world.letters, refused,
                "dead letters of partition {partition}"
            );
        }
    }

    fn tell(&self, story: impl FnOnce() -> String) {
        if self.tells {
            println!("step {:5}: {}", self.step, story());
        }
    }
}

impl<V: Checked> PartitionWorld<V> {
    /// Nothing that others rest on may be ahead of what it rests on.
    fn check_on_the_way(&self, partition: Partition) {
        if let Some(checkpoint) = &self.checkpoint {
            for (id, head) in &self.shelf.heads {
                let is_passed = |logged: &&Logged| {
                    logged.event.conversation == *id
                        && !checkpoint.next_offset.admits(logged.offset)
                };
                // The newest accepted record below the checkpoint is in the head, or newer ones are.
                let newest = self
                    .logged
                    .iter()
                    .rev()
                    .find(is_passed)
                    .map(|logged| logged.offset);
                let is_behind =
                    newest.is_some_and(|newest| head.applied < newest && self.is_accepted(newest));
                assert!(
                    !is_behind,
                    "partition {partition}: the checkpoint has passed {newest:?} of {id}, its head is at {}",
                    head.applied
                );
            }
        }
    }

    fn is_accepted(&self, offset: Offset) -> bool {
        self.shelf
            .ids
            .values()
            .flatten()
            .any(|id| id.offset == offset)
    }
}

/// A worker's life on one partition: what the owner and its partition do, without Kafka.
async fn work<V: Checked>(store: SimStore<V>, seed: u64) -> Result<(), ProjectError> {
    let mut random = Random::new(seed);
    let attempts = Attempts::seeded(seed);
    let partition = store.partition;
    let checkpoint = loop {
        match store.checkpoint(partition).await {
            Ok(checkpoint) => break checkpoint,
            Err(_) => continue,
        }
    };
    let records = store.world.lock().unwrap().partitions[&partition]
        .records
        .clone();
    let end = records
        .last()
        .map_or(NextOffset::START, |last| NextOffset::after(last.offset));
    let mut resume =
        Resume::plan(partition, checkpoint, Offset::new(0), end).expect("a log that is whole");
    let mut position = records
        .iter()
        .position(|record| record.offset >= resume.start)
        .unwrap_or(records.len());
    let budget = if random.chance(50) {
        usize::MAX
    } else {
        20_000
    };
    let mut projection =
        Projection::new(partition, resume.checkpoint, store.clone(), store.clone())
            .with_checkpoint_interval(Duration::from_secs(3))
            .with_state_budget(budget);
    loop {
        let count = 1 + random.below(20);
        let batch: Vec<RawRecord> = records[position..].iter().take(count).cloned().collect();
        position += batch.len();
        if batch.is_empty() {
            projection.write_checkpoint(&attempts).await?;
            // At the end; what follows is waiting for more.
            std::future::pending::<()>().await;
        }
        let batch = resume.admit(partition, batch).expect("the same log");
        if !batch.is_empty() {
            projection.fold(batch, random.chance(50), &attempts).await?;
        }
    }
}

/// A log of one partition: its conversations are not those of another.
fn log_of(partition: Partition, seed: u64, length: usize) -> Vec<Logged> {
    let mut log = Cast::SMALL.log_from_seed(seed, length);
    for logged in &mut log {
        let id = format!("p{partition}-{}", logged.event.conversation);
        logged.event.conversation = ConversationId::new(id).unwrap();
    }
    log
}

fn raw(logged: &Logged) -> RawRecord {
    RawRecord {
        offset: logged.offset,
        append_time: logged.log_time.millis(),
        key: Some(logged.event.conversation.as_str().as_bytes().to_vec()),
        value: Some(encode(&logged.event).unwrap()),
    }
}
