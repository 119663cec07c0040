//! A whole Tidemark to test: a fresh log, a keyspace of its own, gateways and workers as processes.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::future::join_all;
use tokio::sync::{MutexGuard, OnceCell, Semaphore, SemaphorePermit};
use uuid::Uuid;

use crate::{
    Process, Scene, Settings, Size, kafka,
    process::{log_folder, run},
    servers::servers,
    until,
};

/// What is logged at WARN or ERROR and says nothing about Tidemark.
const ALWAYS_FORESEEN: [&str; 3] = [
    // A fresh broker has to begin somehow; the producer tries again.
    "Broker: Coordinator load in progress",
    // The harness sets a timeout of producers or of consumers, and a process's other clients hear of it as well.
    "is a consumer property and will be ignored by this producer instance",
    "is a producer property and will be ignored by this consumer instance",
];

/// A view, which a worker builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum View {
    /// The permanent record.
    Roaming,
    /// What each user's list shows.
    Sessions,
    /// What devices have yet to store.
    Inbox,
}

impl View {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Roaming, Self::Sessions, Self::Inbox];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Roaming => "roaming",
            Self::Sessions => "sessions",
            Self::Inbox => "inbox",
        }
    }
}

/// The town that tests use in turn, and the right to use Kafka alone.
static STANDING: tokio::sync::Mutex<Option<Town>> = tokio::sync::Mutex::const_new(None);

/// A running Tidemark. When it is dropped, its processes end orderly, and their logs are looked through.
#[derive(Debug)]
pub struct Town {
    settings: Settings,
    environment: BTreeMap<&'static str, String>,
    folder: PathBuf,
    processes: Mutex<Vec<(Role, Arc<Process>)>>,
    foreseen: Mutex<Vec<String>>,
    /// Nothing else uses Kafka while a town stands that may break it.
    _alone: Option<MutexGuard<'static, Option<Town>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Gateway,
    Worker(View),
}

impl Town {
    /// The town that all tests of a binary share, with [`Settings::default`] and two gateways. What they do there must
    /// leave it whole; a [`Visit`] that ends finds lines in the logs that should not be.
    ///
    /// A few tests are there at a time.
    pub async fn shared() -> Visit {
        Self::shared_with(Settings {
            gateways: 2,
            ..Settings::default()
        })
        .await
    }

    /// As [`shared`](Self::shared), with other settings: the same ones in all of a binary's tests.
    pub async fn shared_with(settings: Settings) -> Visit {
        static TOWN: OnceCell<Town> = OnceCell::const_new();
        static VISITORS: Semaphore = Semaphore::const_new(4);
        let permit = VISITORS.acquire().await.expect("it is never closed");
        let town = TOWN
            .get_or_init(async || Self::begin(settings, None).await.running().await)
            .await;
        Visit {
            town,
            _permit: permit,
        }
    }

    /// The town that all tests of a binary use one after the other, which misses its workers soon. What they do to its
    /// processes they repair, or the next one does; one that fails takes the town with it.
    pub async fn in_turn() -> Turn {
        let mut town = STANDING.lock().await;
        match town.as_ref() {
            Some(town) => town.restore().await,
            None => {
                let settings = Settings {
                    misses_workers_soon: true,
                    ..Settings::default()
                };
                *town = Some(Self::begin(settings, None).await.running().await);
            }
        }
        Turn(town)
    }

    /// Brings it back to one gateway and one worker a view, all ready.
    async fn restore(&self) {
        let roles = View::ALL
            .map(Role::Worker)
            .into_iter()
            .chain([Role::Gateway]);
        for role in roles {
            let mut running = self.processes_that(|other| other == role);
            running.retain(|process| process.ended().is_none());
            let kept = running.pop();
            join_all(running.iter().map(|process| process.terminate())).await;
            match (kept, role) {
                (Some(_), _) => {}
                (None, Role::Gateway) => drop(self.begin_gateway()),
                (None, Role::Worker(view)) => drop(self.begin_worker(view)),
            }
        }
        self.all_ready().await;
    }

    /// A running town of its own. Tests that have one run one after the other.
    pub async fn alone(settings: Settings) -> Self {
        Self::empty(settings).await.running().await
    }

    /// A town of its own in which nothing runs yet: log and tables are there.
    pub async fn empty(settings: Settings) -> Self {
        let mut standing = STANDING.lock().await;
        // Its log goes with it.
        drop(standing.take());
        Self::begin(settings, Some(standing)).await
    }

    async fn begin(settings: Settings, alone: Option<MutexGuard<'static, Option<Self>>>) -> Self {
        let name = Uuid::new_v4().simple().to_string();
        let keyspace = format!("t_{}", &name[..12]);
        let folder = log_folder().join(&keyspace);
        std::fs::create_dir_all(&folder).expect("the log folder can be written");
        let environment = BTreeMap::from([
            ("TIDEMARK_KAFKA", servers().kafka.clone()),
            ("TIDEMARK_CQL", servers().cql.clone()),
            ("TIDEMARK_KEYSPACE", keyspace),
        ]);
        let town = Self {
            settings,
            environment,
            folder,
            processes: Mutex::default(),
            foreseen: Mutex::default(),
            _alone: alone,
        };
        kafka::delete_log().await;
        town.set_up().await;
        town
    }

    async fn running(self) -> Self {
        for _ in 0..self.settings.gateways {
            self.begin_gateway();
        }
        for view in View::ALL {
            self.begin_worker(view);
        }
        self.all_ready().await;
        self
    }

    async fn set_up(&self) {
        let arguments = [vec!["setup".to_owned()], self.settings.arguments()].concat();
        let (code, output, errors) = self.command(&arguments, "").await;
        assert!(
            code == 0,
            "tidemark {}: exit code {code}\n{output}{errors}",
            arguments.join(" ")
        );
    }

    /// Runs the binary to its end in this town: its exit code, its standard output and its standard error.
    pub async fn command(
        &self,
        arguments: &[impl AsRef<str>],
        input: &str,
    ) -> (i32, String, String) {
        let arguments: Vec<String> = arguments
            .iter()
            .map(|text| text.as_ref().to_owned())
            .collect();
        let (environment, input) = (self.environment.clone(), input.to_owned());
        let ran = tokio::task::spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            run(&arguments, &environment, &input)
        });
        ran.await.expect("running does not panic")
    }

    /// Ends everything that runs, and expects it to end as it should. What a test did to it may be heard of late.
    pub async fn end_all(&self) {
        for (process, status) in
            join_all(self.running_processes().into_iter().map(async |process| {
                let status = process.terminate().await;
                (process, status)
            }))
            .await
        {
            assert!(
                status.success(),
                "{} was told to end: {status}",
                process.name()
            );
        }
    }

    /// Has `tidemark audit` fold the log anew and compare all that is stored; it may run beside workers.
    pub async fn audited(&self) {
        let (code, output, errors) = self.command(&["audit", "--output", "json"], "").await;
        assert!(
            code == 0,
            "tidemark audit found differences: {output}{errors}"
        );
    }

    /// Starts a gateway; it is not ready yet.
    pub fn begin_gateway(&self) -> Arc<Process> {
        // A broker that is away is told of sooner than after ten seconds.
        let properties = "message.timeout.ms=4000\n";
        let mut environment = self.environment.clone();
        environment.insert("TIDEMARK_KAFKA_PROPERTIES", properties.to_owned());
        self.begin_process(Role::Gateway, "gateway", &["gateway"], environment)
    }

    /// Starts a worker for a view; it is not ready yet.
    pub fn begin_worker(&self, view: View) -> Arc<Process> {
        self.begin_worker_with(view, &[])
    }

    /// As [`begin_worker`](Self::begin_worker), with further arguments.
    pub fn begin_worker_with(&self, view: View, more: &[&str]) -> Arc<Process> {
        let mut environment = self.environment.clone();
        if self.settings.misses_workers_soon {
            let properties = "session.timeout.ms=6000\nheartbeat.interval.ms=1000\n";
            environment.insert("TIDEMARK_KAFKA_PROPERTIES", properties.to_owned());
        }
        let arguments = [&["project", view.name()], more].concat();
        self.begin_process(Role::Worker(view), view.name(), &arguments, environment)
    }

    fn begin_process(
        &self,
        role: Role,
        name: &str,
        arguments: &[&str],
        environment: BTreeMap<&'static str, String>,
    ) -> Arc<Process> {
        let process = Arc::new(Process::start(name, arguments, &environment, &self.folder));
        self.processes
            .lock()
            .unwrap()
            .push((role, Arc::clone(&process)));
        process
    }

    /// Starts a worker and waits until it is ready.
    pub async fn start_worker(&self, view: View) -> Arc<Process> {
        let worker = self.begin_worker(view);
        worker.ready().await;
        worker
    }

    /// Starts a gateway and waits until it is ready.
    pub async fn start_gateway(&self) -> Arc<Process> {
        let gateway = self.begin_gateway();
        gateway.ready().await;
        gateway
    }

    /// Waits until everything that runs says that it is ready.
    pub async fn all_ready(&self) {
        let processes = self.running_processes();
        join_all(processes.iter().map(|process| process.ready())).await;
    }

    /// The worker of a view that was started last.
    pub fn worker(&self, view: View) -> Arc<Process> {
        self.workers(view).pop().expect("a worker was started")
    }

    /// The workers of a view that were ever started, in that order.
    pub fn workers(&self, view: View) -> Vec<Arc<Process>> {
        self.processes_that(|role| role == Role::Worker(view))
    }

    /// Waits until the workers of a view have nothing left to fold, by their own account.
    pub async fn caught_up(&self, view: View) {
        let partitions = usize::from(self.settings.partitions);
        until(
            &format!("caught up: {}", view.name()),
            crate::PATIENCE,
            async || {
                let mut lags = BTreeMap::new();
                for worker in self
                    .workers(view)
                    .iter()
                    .filter(|worker| worker.ended().is_none())
                {
                    lags.extend(worker.metric("tidemark_lag_records").await);
                }
                let is_there = lags.len() == partitions && lags.values().all(|lag| *lag == 0.0);
                if is_there { Ok(()) } else { Err(lags) }
            },
        )
        .await;
    }

    /// The gateways that were ready once and have not ended, in the order in which they were started.
    pub fn gateways(&self) -> Vec<Arc<Process>> {
        let mut gateways = self.processes_that(|role| role == Role::Gateway);
        gateways.retain(|gateway| gateway.was_ready() && gateway.ended().is_none());
        gateways
    }

    fn processes_that(&self, is_it: impl Fn(Role) -> bool) -> Vec<Arc<Process>> {
        let processes = self.processes.lock().unwrap();
        let some = processes.iter().filter(|(role, _)| is_it(*role));
        some.map(|(_, process)| Arc::clone(process)).collect()
    }

    fn running_processes(&self) -> Vec<Arc<Process>> {
        let mut processes = self.processes_that(|_| true);
        processes.retain(|process| process.ended().is_none());
        processes
    }

    /// What it was set up with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A scene with people that nobody else knows, whose groups are of this size.
    pub fn scene(&self, size: Size) -> Scene<'_> {
        Scene::new(self, size)
    }

    /// Announces lines at WARN or ERROR that hold this text.
    pub fn foresees(&self, text: &str) {
        self.foreseen.lock().unwrap().push(text.to_owned());
    }

    /// Lines at WARN or ERROR that nobody has announced, since the last look.
    fn alarms(&self) -> Vec<String> {
        let mut foreseen = self.foreseen.lock().unwrap().clone();
        foreseen.extend(ALWAYS_FORESEEN.map(str::to_owned));
        let mut alarms = Vec::new();
        for process in self.processes_that(|_| true) {
            let mut output = process.output().lock().unwrap();
            let lines = output.new_alarms().into_iter();
            let lines = lines.filter(|line| !foreseen.iter().any(|text| line.contains(text)));
            let path = output.path().display().to_string();
            alarms.extend(lines.map(|line| format!("{path}: {line}")));
        }
        alarms
    }
}

impl Drop for Town {
    fn drop(&mut self) {
        const ENDS_WITHIN: Duration = Duration::from_secs(30);
        if std::thread::panicking() {
            for process in self.running_processes() {
                process.kill();
            }
            let alarms = self.alarms().join("\n");
            eprintln!(
                "the logs of this town are in {}\n{alarms}",
                self.folder.display()
            );
            return;
        }
        let running = self.running_processes();
        // All at once, so that they end beside each other.
        let ended = std::thread::scope(|scope| {
            let ends = running.iter().map(|process| {
                (
                    process,
                    scope.spawn(|| process.terminate_blocking(ENDS_WITHIN)),
                )
            });
            let ends: Vec<_> = ends.collect();
            let joined = ends.into_iter().map(|(process, end)| {
                (
                    process.name(),
                    end.join().expect("ending a process does not panic"),
                )
            });
            joined.collect::<Vec<_>>()
        });
        let badly = ended
            .into_iter()
            .filter(|(_, status)| !status.success())
            .map(|(name, status)| format!("{name} was told to end: {status}"));
        complain(badly.chain(self.alarms()).collect());
    }
}

/// A test's turn in the town that one after the other uses.
#[derive(Debug)]
pub struct Turn(MutexGuard<'static, Option<Town>>);

impl std::ops::Deref for Turn {
    type Target = Town;
    fn deref(&self) -> &Town {
        self.0.as_ref().expect("it is there until the turn ends")
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Whatever state it is in, nobody should go on with it.
            drop(self.0.take());
            return;
        }
        let alarms = self.alarms();
        self.foreseen.lock().unwrap().clear();
        if !alarms.is_empty() {
            drop(self.0.take());
        }
        complain(alarms);
    }
}

/// A test's stay in the shared town.
#[derive(Debug)]
pub struct Visit {
    town: &'static Town,
    _permit: SemaphorePermit<'static>,
}

impl std::ops::Deref for Visit {
    type Target = Town;
    fn deref(&self) -> &Town {
        self.town
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the logs of this town are in {}",
                self.town.folder.display()
            );
            return;
        }
        let ended = self
            .town
            .processes_that(|_| true)
            .into_iter()
            .filter_map(|process| {
                let status = process.ended()?;
                Some(format!("{} has ended: {status}", process.name()))
            });
        complain(ended.chain(self.town.alarms()).collect());
    }
}

#[track_caller]
fn complain(lines: Vec<String>) {
    assert!(
        lines.is_empty(),
        "while this test ran, unannounced:\n{}",
        lines.join("\n")
    );
}
