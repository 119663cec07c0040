//! One run: a scheduler that draws every step from the seed, until the log is folded and every fault is over.
//!
//! The same seed and the same faults give the same run. After the last fault everything must come right by itself,
//! within a bound of steps.

use std::{collections::BTreeMap, fmt::Display, sync::Arc, time::Duration};

use tidemark_event::{NextOffset, Offset};
use tidemark_store::{
    FoldVersion, Generation, GenerationNo, Store,
    double::{Cluster, Direct},
};

use crate::{
    checkers::{Checkers, Reader},
    faults::{Fault, Kind},
    group::Group,
    process::{KEYSPACE, Process},
    random::Random,
    reference::Reference,
    shelf::{SimView, shelf_of},
    tally::Tally,
    workload::{Workload, index},
    world::{Answer, Ask, Lost, Pending, State, World},
};

/// Processes that answer; a new one is started where there are fewer.
const PROCESSES: usize = 2;

/// So many at most, zombies included.
const MOST_PROCESSES: usize = 6;

/// So many steps after the last fault everything must have come right.
const QUIET_STEPS: usize = 30_000;

/// What a run is of.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) seed: u64,
    pub(crate) workload: Arc<Workload>,
    pub(crate) reference: Arc<Reference>,
    pub(crate) faults: Vec<Fault>,
    /// The step by which the whole log is there, if faults do not last longer.
    pub(crate) steps: usize,
    /// Whether the run is told on the standard output.
    pub(crate) is_told: bool,
}

struct Run<V: SimView> {
    scene: Scene,
    random: Random,
    faults: std::vec::IntoIter<Fault>,
    next_fault: Option<Fault>,
    world: World,
    cluster: Cluster,
    checkers: Checkers,
    group: Group,
    processes: BTreeMap<usize, Process>,
    next_process: usize,
    /// Requests whose sender no longer waits, and the step at which each arrives.
    late: Vec<(usize, Ask)>,
    snapshot: Option<Cluster>,
    /// No server answers before this step.
    away_until: usize,
    /// No dead letter is taken before this step.
    letters_away_until: usize,
    step: usize,
    tally: Tally,
    reader: Generation<V>,
    readers_runtime: tokio::runtime::Runtime,
}

/// Runs a scene, and panics where anything is not as it must be.
pub(crate) fn run<V: SimView + Reader>(scene: &Scene) -> Tally {
    let mut run = Run::<V>::new(scene.clone());
    run.play();
    run.stop();
    run.finish();
    run.tally
}

impl<V: SimView + Reader> Run<V> {
    fn new(scene: Scene) -> Self {
        let cluster = scene.reference.empty.copy();
        let world = World::new(scene.workload.clone());
        let partitions = scene.workload.partitions.iter();
        let group = Group::of(partitions.map(|log| log.partition));
        let checkers = Checkers::new(scene.workload.clone(), scene.reference.clone());
        let mut faults = scene.faults.clone().into_iter();
        let readers_runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let store = Store::over(&cluster, KEYSPACE, Arc::new(Direct(cluster.clone())), 256);
        let version = FoldVersion::new(tidemark_fold::FOLD_VERSION);
        let open = store.open(GenerationNo::FIRST, version);
        let reader = readers_runtime.block_on(open).unwrap();
        Self {
            random: Random::new(scene.seed),
            next_fault: faults.next(),
            faults,
            world,
            cluster,
            checkers,
            group,
            processes: BTreeMap::new(),
            next_process: 0,
            late: Vec::new(),
            snapshot: None,
            away_until: 0,
            letters_away_until: 0,
            step: 0,
            tally: Tally::of_one_run(scene.workload.events()),
            reader,
            readers_runtime,
            scene,
        }
    }

    fn play(&mut self) {
        loop {
            self.step += 1;
            let last_fault = self.scene.faults.last().map_or(0, |fault| fault.at);
            assert!(
                self.step < last_fault.max(self.scene.steps) + QUIET_STEPS,
                "stuck: the view does not come right once the faults are over: {}",
                self.standing()
            );
            while let Some(fault) = self.next_fault.filter(|fault| fault.at <= self.step) {
                self.inject(fault);
                self.next_fault = self.faults.next();
            }
            self.grow_log();
            self.tend();
            self.act();
            if self.is_done() {
                break;
            }
        }
        self.tally.steps = self.step as u64;
    }

    /// More of the log is there with each step.
    fn grow_log(&mut self) {
        let mut world = self.world.lock();
        for log in &self.scene.workload.partitions {
            let share = log.records.len() * self.step / self.scene.steps;
            let end = match log.records.get(share) {
                Some(record) => NextOffset::new(record.offset.get()),
                None => log.end,
            };
            let known = &mut world.ends[index(log.partition)];
            *known = end.max(*known);
        }
    }

    /// Wakes, starts and buries processes, and lets the group move on.
    fn tend(&mut self) {
        let step = self.step;
        let mut told = Vec::new();
        for process in self.processes.values_mut() {
            if process.frozen_until.is_some_and(|until| until <= step) {
                let slept = Duration::from_millis(self.random.next() % 60_000);
                process.wake(slept);
                told.push(format!("process {} is woken", process.id));
                self.tally.wakings += 1;
            }
        }
        let ended = self
            .processes
            .values()
            .filter(|process| process.has_ended());
        let ended: Vec<usize> = ended.map(|process| process.id).collect();
        for id in ended {
            told.push(format!("process {id} has stopped"));
            self.bury(id);
        }
        let heard_of = self.group.heard_of(&self.processes);
        let is_wanted = heard_of == 0 || heard_of < PROCESSES && self.random.chance(20);
        if is_wanted && self.processes.len() < MOST_PROCESSES {
            let id = self.next_process;
            self.next_process += 1;
            let process = Process::start::<V>(id, &self.world, &self.cluster, &mut self.random);
            self.processes.insert(id, process);
            self.group.join(id);
            told.push(format!("process {id} starts"));
        }
        self.group
            .step(step, &mut self.processes, &mut self.random, &mut told);
        for told in told {
            self.tell(told);
        }
    }

    /// One request is answered, or one process moves on by itself.
    fn act(&mut self) {
        let die = self.random.below(100);
        if die < 75 && self.answer_one() {
            return;
        }
        if die < 85 && self.late_arrives() {
            return;
        }
        if die < 88 && self.random.chance(5) {
            self.read();
        }
        let awake: Vec<usize> = self
            .processes
            .values()
            .filter(|process| process.is_awake())
            .map(|process| process.id)
            .collect();
        if awake.is_empty() {
            return;
        }
        let id = *self.random.one_of(&awake);
        let process = &self.processes[&id];
        for feed in process.feeds.values() {
            if self.random.chance(70) {
                feed.fetch(&self.world, 1 + self.random.below(30));
            }
        }
        if self.random.chance(20) {
            process.tell_statistics(&self.world);
        }
        let is_waiting = self.world.lock().pending.iter().any(|it| it.process == id);
        let millis = if is_waiting && self.random.chance(90) {
            1
        } else {
            *self.random.one_of(&[1, 3, 60, 1_000, 6_000])
        };
        self.turn(id, Duration::from_millis(millis));
    }

    fn turn(&mut self, id: usize, time: Duration) {
        let process = &self.processes[&id];
        process.run(time);
        if let Some(why) = process.stands_still() {
            panic!("a partition of process {id} stands still: {why}");
        }
        if process.is_overtaken() {
            self.tally.overtaken += 1;
        }
        let committed = std::mem::take(&mut self.world.lock().committed);
        for (partition, next) in committed {
            self.checkers.committed(partition, next);
        }
    }

    /// Answers one request that waits, whoever sent it.
    fn answer_one(&mut self) -> bool {
        let step = self.step;
        let world = self.world.clone();
        let mut world = world.lock();
        let ready = world.pending.iter().enumerate();
        let ready = ready.filter(|(_, pending)| pending.held_until <= step);
        let ready: Vec<usize> = ready.map(|(place, _)| place).collect();
        if ready.is_empty() {
            return false;
        }
        let place = *self.random.one_of(&ready);
        let pending = world.pending.remove(place);
        let process = pending.process;
        let is_letter = matches!(pending.ask, Ask::Letters(_));
        if step < self.away_until || is_letter && step < self.letters_away_until {
            self.lose(&mut world, pending);
        } else {
            let answer = self.serve(&mut world, &pending.ask);
            let _ = pending.answer.send(Ok(answer));
        }
        drop(world);
        if self.processes.get(&process).is_some_and(Process::is_awake) {
            self.turn(process, Duration::from_millis(1));
        }
        true
    }

    fn late_arrives(&mut self) -> bool {
        let due = self.late.iter().position(|(at, _)| *at <= self.step);
        let Some(place) = due else { return false };
        let (_, ask) = self.late.swap_remove(place);
        self.tell(format!("late: {ask}"));
        self.tally.late += 1;
        let world = self.world.clone();
        self.serve(&mut world.lock(), &ask);
        true
    }

    fn serve(&mut self, world: &mut State, ask: &Ask) -> Answer {
        if self.scene.is_told && ask.is_write() {
            println!("step {:5}: served: {ask}", self.step);
        }
        match ask {
            Ask::Store(request) => {
                Answer::Store(self.checkers.serve(request, &self.cluster, world))
            }
            Ask::Letters(letters) => {
                self.checkers.sent(letters);
                for letter in letters {
                    let sent = &mut world.letters[index(letter.partition)];
                    sent.insert(letter.record.offset);
                }
                Answer::Sent
            }
            Ask::Bounds(partition) => Answer::Bounds(Offset::new(0), world.end(*partition)),
        }
    }

    /// The sender gets no answer. The request is served, or not, or will be.
    fn lose(&mut self, world: &mut State, pending: Pending) {
        match self.random.below(3) {
            0 => drop(self.serve(world, &pending.ask)),
            1 if pending.ask.is_write() => {
                let at = self.step + self.random.below(300);
                self.late.push((at, pending.ask.clone()));
            }
            _ => {}
        }
        let _ = pending.answer.send(Err(Lost));
    }

    fn inject(&mut self, fault: Fault) {
        let mut die = Random::new(fault.die);
        let alive: Vec<usize> = self.processes.keys().copied().collect();
        if alive.is_empty() {
            return;
        }
        let victim = *die.one_of(&alive);
        if fault.kind.is_crash_point() {
            let world = self.world.lock();
            let doing = world.pending.iter().filter(|it| it.process == victim);
            let doing: Vec<String> = doing.map(|pending| pending.ask.kind()).collect();
            let checkpoints = self.scene.workload.partitions.iter();
            let state: Vec<i64> = checkpoints
                .map(|log| self.checkers.checkpoint(log.partition).get())
                .collect();
            self.tally
                .crash_point(fault.kind, &doing, &(state, alive.len(), self.late.len()));
        }
        match fault.kind {
            Kind::Crash => self.crash(victim),
            Kind::Freeze => self.freeze(victim, &mut die),
            Kind::Lose | Kind::Slow => self.spoil_request(fault.kind, &mut die),
            Kind::Away => {
                self.away_until = self.step + die.below(60);
                let until = self.away_until;
                self.tell(format!("no server answers until step {until}"));
            }
            Kind::LettersAway => {
                self.letters_away_until = self.step + die.below(150);
                let until = self.letters_away_until;
                self.tell(format!("no dead letter is taken until step {until}"));
            }
            Kind::PutOut => {
                let learns_at = self.step + die.below(150);
                if self.group.put_out(victim, learns_at) {
                    self.tell(format!("process {victim} is put out of the group"));
                }
            }
            Kind::Move => {
                let partition = die.below(self.scene.workload.partitions.len());
                if self.group.take_back(partition, &self.processes) {
                    self.tell(format!("partition {partition} is to be moved"));
                }
            }
            Kind::Stop => {
                if let Some(process) = self.processes.get_mut(&victim) {
                    process.stop();
                    self.tell(format!("process {victim} is asked to stop"));
                }
            }
            Kind::CrashAll => alive.into_iter().for_each(|id| self.crash(id)),
            Kind::Snapshot => {
                self.snapshot = Some(self.cluster.copy());
                self.tell("a snapshot is made");
            }
            Kind::Restore => self.restore(&alive),
        }
    }

    fn crash(&mut self, id: usize) {
        self.tell(format!("process {id} crashes"));
        self.tally.crashes += 1;
        self.bury(id);
    }

    /// A process is no more. What it had sent may still arrive.
    fn bury(&mut self, id: usize) {
        drop(self.processes.remove(&id));
        self.group.leave(id);
        let world = self.world.clone();
        let mut world = world.lock();
        let pending = std::mem::take(&mut world.pending);
        for pending in pending {
            if pending.process == id {
                self.lose(&mut world, pending);
            } else {
                world.pending.push(pending);
            }
        }
    }

    fn freeze(&mut self, id: usize, die: &mut Random) {
        let until = self.step + 1 + die.below(200);
        if let Some(process) = self.processes.get_mut(&id)
            && process.is_awake()
        {
            process.frozen_until = Some(until);
            self.tell(format!("process {id} is frozen until step {until}"));
            // Mostly it is missed before it is woken.
            if die.chance(70) && self.group.put_out(id, until + die.below(80)) {
                self.tell(format!("process {id} is put out of the group"));
            }
        }
    }

    /// A request, a write if there is one, is lost or served late.
    fn spoil_request(&mut self, kind: Kind, die: &mut Random) {
        let step = self.step;
        let world = self.world.clone();
        let mut world = world.lock();
        let writes = world.pending.iter().enumerate();
        let writes = writes.filter(|(_, pending)| pending.ask.is_write());
        let mut places: Vec<usize> = writes.map(|(place, _)| place).collect();
        if places.is_empty() {
            places = (0..world.pending.len()).collect();
        }
        if places.is_empty() {
            return;
        }
        let place = *die.one_of(&places);
        if kind == Kind::Slow {
            let until = step + die.below(100);
            let slowed = &mut world.pending[place];
            slowed.held_until = until;
            let ask = slowed.ask.clone();
            self.tell(format!("slow until step {until}: {ask}"));
            return;
        }
        let pending = world.pending.remove(place);
        self.tell(format!(
            "no answer to process {}: {}",
            pending.process, pending.ask
        ));
        self.tally.lost += 1;
        self.lose(&mut world, pending);
    }

    /// Everybody dies, nothing is on its way any more, and the store is what it was.
    fn restore(&mut self, alive: &[usize]) {
        let Some(snapshot) = self.snapshot.clone() else {
            return;
        };
        alive.iter().for_each(|id| self.crash(*id));
        self.late.clear();
        self.cluster.restore(&snapshot);
        self.checkers.restored(&self.cluster);
        self.tally.restored += 1;
        self.tell("the store is set back to the snapshot");
    }

    /// Reads as a gateway would, at this moment.
    fn read(&mut self) {
        self.tally.reads += 1;
        for log in &self.scene.workload.partitions {
            let runtime = &self.readers_runtime;
            let shelf = runtime.block_on(shelf_of(&self.reader, log));
            <V as Reader>::check(&shelf);
            let checkpoint = runtime.block_on(self.reader.checkpoint(log.partition));
            if let Some(stored) = checkpoint.unwrap() {
                let wanted = log.checkpoint_at(stored.next_offset);
                assert_eq!(
                    stored, wanted,
                    "the checkpoint of partition {}",
                    log.partition
                );
            }
        }
    }

    fn is_done(&self) -> bool {
        let world = self.world.lock();
        let is_folded = self.scene.workload.partitions.iter().all(|log| {
            world.end(log.partition) == log.end
                && self.checkers.checkpoint(log.partition) == log.end
        });
        is_folded
            && self.next_fault.is_none()
            && self.late.is_empty()
            && world.pending.is_empty()
            && self.group.is_settled()
            && self.processes.values().all(Process::is_awake)
    }

    /// All processes stop as asked, answered promptly.
    fn stop(&mut self) {
        self.processes.values_mut().for_each(Process::stop);
        for _ in 0..QUIET_STEPS {
            if self.processes.is_empty() {
                return;
            }
            let ids: Vec<usize> = self.processes.keys().copied().collect();
            for id in ids {
                self.turn(id, Duration::from_millis(10));
                if self.processes[&id].has_ended() {
                    self.bury(id);
                }
            }
            while self.answer_one() {}
        }
        panic!("stuck: a process does not stop");
    }

    fn finish(&mut self) {
        self.read();
        self.checkers.finish(&self.cluster, &self.world.lock());
    }

    /// Where everything stands, for a run that is stuck.
    fn standing(&self) -> String {
        let world = self.world.lock();
        let partitions = self.scene.workload.partitions.iter();
        let partitions: Vec<String> = partitions
            .map(|log| {
                let checkpoint = self.checkers.checkpoint(log.partition);
                let end = world.end(log.partition);
                format!("partition {} at {checkpoint} of {end}", log.partition)
            })
            .collect();
        let pending: Vec<String> = world
            .pending
            .iter()
            .map(|pending| format!("{} of {}", pending.ask, pending.process))
            .collect();
        format!(
            "{partitions:?}, waiting {pending:?}, late {}, settled {}",
            self.late.len(),
            self.group.is_settled()
        )
    }

    fn tell(&self, what: impl Display) {
        if self.scene.is_told {
            println!("step {:5}: {what}", self.step);
        }
    }
}
