//! One fault after the other, under load, and what must hold after each.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tidemark_e2e::{Process, Size, Town, View, audit::audit, load::Load};

use crate::{dice::Dice, traffic::produce, watch::Watch};

/// Events of one phase at most: the naive model that judges them is slow.
const EVENTS: usize = 1_500;

/// Load before and after a fault.
const CALM: Duration = Duration::from_secs(2);

/// A town, and what is done to it.
pub(crate) struct Chaos<'t> {
    pub(crate) town: &'t Town,
    pub(crate) dice: Dice,
    watch: Watch,
    phases: AtomicU64,
}

impl<'t> Chaos<'t> {
    pub(crate) async fn begin(town: &'t Town) -> Self {
        Self {
            town,
            dice: Dice::from_environment(),
            watch: Watch::default(),
            phases: AtomicU64::new(0),
        }
    }

    /// Does something to the town while a load goes on, and checks everything once it is over.
    pub(crate) async fn phase(&self, what: &str, fault: impl AsyncFnOnce(&Self)) {
        let number = self.phases.fetch_add(1, Ordering::Relaxed);
        println!("\nphase {number}: {what}");
        let scene = self.town.scene(Size::AsIs);
        let load = Load::of(self.dice.below(1 << 40), EVENTS);
        let (stop, fault_ended) = (
            AtomicBool::new(false),
            std::sync::Mutex::new(Instant::now()),
        );
        let disturb = async {
            tokio::time::sleep(CALM).await;
            fault(self).await;
            *fault_ended.lock().unwrap() = Instant::now();
            stop.store(true, Ordering::Relaxed);
        };
        let (produced, ()) = tokio::join!(produce(&scene, &load, &stop), disturb);
        self.watch.caught_up(self.town).await;
        let recovered = fault_ended.lock().unwrap().elapsed();
        self.town.all_ready().await;
        audit(&scene, &load.cast()).await;
        self.town.audited().await;
        let still: Vec<String> = self
            .watch
            .longest_still()
            .into_iter()
            .map(|(view, still)| format!("{view} {:.1} s", still.as_secs_f64()))
            .collect();
        println!(
            "  {} events acknowledged, {} appends tried again, the slowest acknowledged after {:.1} s; lag 0 after {:.1} \
             s; a partition stood still at most: {}; answers as the model's, audit clean",
            produced.acknowledged,
            produced.tried_again,
            produced.longest.as_secs_f64(),
            recovered.as_secs_f64(),
            still.join(", ")
        );
    }

    /// Lets the views be watched while `run` goes on.
    pub(crate) async fn watched(&self, run: impl Future<Output = ()>) {
        let watching = self.watch.run(self.town);
        let running = async {
            run.await;
            self.watch.stop();
        };
        tokio::join!(watching, running);
    }

    /// Workers of a view that run, oldest first.
    pub(crate) fn workers(&self, view: View) -> Vec<Arc<Process>> {
        let mut workers = self.town.workers(view);
        workers.retain(|worker| worker.ended().is_none());
        workers
    }

    /// One of the workers of a view that run.
    pub(crate) fn any_worker(&self, view: View) -> Arc<Process> {
        let workers = self.workers(view);
        let place = self.dice.below(workers.len() as u64) as usize;
        Arc::clone(&workers[place])
    }

    pub(crate) async fn start_worker(&self, view: View) -> Arc<Process> {
        let worker = self.town.begin_worker_with(view, &CLASSIC);
        worker.ready().await;
        worker
    }

    /// A moment somewhere in the middle of whatever goes on: this is no wait for anything.
    pub(crate) async fn some_time(&self, most: Duration) {
        let millis = self.dice.below(most.as_millis() as u64);
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

/// A worker of the classic protocol that is missed soon.
pub(crate) const CLASSIC: [&str; 4] = [
    "--kafka-property",
    "session.timeout.ms=6000",
    "--kafka-property",
    "heartbeat.interval.ms=500",
];

/// A worker of the protocol whose coordinator is the broker.
pub(crate) const KIP_848: [&str; 2] = ["--group-protocol", "consumer"];
