//! The servers that the tests run against, and how they fail.
//!
//! `deploy/dev/with-servers` names them in the environment. They must be of its making: each town deletes the log that
//! was there before.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use crate::process::runs_folder;

/// Where the servers are.
#[derive(Debug)]
pub struct Servers {
    /// Kafka's bootstrap servers.
    pub kafka: String,
    /// The store's contact points.
    pub cql: String,
    /// Their state folder, with pid files where they are processes of this machine.
    folder: PathBuf,
    /// Held while this process lives: two runs would delete each other's log.
    _lock: File,
}

/// One of the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// The broker, where there is one.
    Kafka,
    /// The store, where it is one node.
    Cassandra,
    /// A broker of several, from 1.
    Broker(u8),
    /// A node of several, from 1.
    Node(u8),
}

impl Server {
    /// Its name in the servers' scripts.
    pub fn name(self) -> String {
        match self {
            Self::Kafka => "kafka".to_owned(),
            Self::Cassandra => "cassandra".to_owned(),
            Self::Broker(number) => format!("kafka-{number}"),
            Self::Node(number) => format!("cassandra-{number}"),
        }
    }
}

/// The servers of this run.
///
/// # Panics
/// Where there are none, or none that may be wiped.
pub fn servers() -> &'static Servers {
    static SERVERS: LazyLock<Servers> = LazyLock::new(|| {
        const HOW: &str = "run `deploy/dev/with-servers cargo test -p tidemark-e2e`";
        let variable = |name: &str| match std::env::var(name) {
            Ok(value) if !value.is_empty() => value,
            _ => panic!("{name} is not set: {HOW}"),
        };
        let folder = PathBuf::from(variable("TIDEMARK_DEV"));
        let is_temporary = folder.join("with-servers.lock").exists();
        assert!(
            is_temporary,
            "the servers are not made for tests, and their log would be deleted: {HOW}"
        );
        let lock = run_lock(&variable("TIDEMARK_KAFKA"));
        Servers {
            kafka: variable("TIDEMARK_KAFKA"),
            cql: variable("TIDEMARK_CQL"),
            folder,
            _lock: lock,
        }
    });
    &SERVERS
}

impl Servers {
    /// Whether the servers are processes that can be killed and frozen. In containers they are not.
    pub fn can_fail(&self) -> bool {
        [Server::Kafka, Server::Cassandra]
            .iter()
            .all(|server| self.pid_file(*server).exists())
    }

    /// Ends a server at once, as a power cut does.
    pub fn kill(&self, server: Server) {
        let pid = self.signal("KILL", server);
        while Path::new(&format!("/proc/{pid}/stat")).exists() && !is_zombie(&pid) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Stops a server in the middle of whatever it does: connections stay, answers do not come.
    pub fn freeze(&self, server: Server) {
        self.signal("STOP", server);
    }

    /// Lets it go on.
    pub fn thaw(&self, server: Server) {
        self.signal("CONT", server);
    }

    /// Where they keep their data and logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether there are three brokers and three nodes.
    pub fn are_a_cluster(&self) -> bool {
        self.pid_file(Server::Broker(3)).exists() && self.pid_file(Server::Node(3)).exists()
    }

    /// Starts what is not running, and waits until it is ready.
    pub async fn start(&self) {
        let script = if self.folder.join("cluster.ports").exists() {
            "../deploy/dev/cluster"
        } else {
            "../deploy/dev/servers"
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let mut command = Command::new(script);
        command
            .arg("start")
            .env("TIDEMARK_DEV", &self.folder)
            .env_remove("TIDEMARK_KAFKA")
            .env_remove("TIDEMARK_CQL")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = tokio::task::spawn_blocking(move || command.output());
        let output = started
            .await
            .unwrap()
            .expect("the servers' script can be run");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "the servers do not start: {said}");
    }

    fn signal(&self, signal: &str, server: Server) -> String {
        let path = self.pid_file(server);
        let pid = std::fs::read_to_string(&path).expect("the server runs on this machine");
        let pid = pid.trim().to_owned();
        let status = Command::new("kill")
            .args(["-s", signal, "--", &pid])
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "{} does not run",
            server.name()
        );
        pid
    }

    fn pid_file(&self, server: Server) -> PathBuf {
        self.folder.join(format!("{}.pid", server.name()))
    }
}

/// Waits until no other run uses this Kafka.
fn run_lock(kafka: &str) -> File {
    let name = format!("{}.lock", kafka.replace([':', ','], "-"));
    let lock = File::create(runs_folder().join(name)).expect("the target folder can be written");
    lock.lock().expect("a file can be locked");
    lock
}

fn is_zombie(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| rest.starts_with('Z'))
}
