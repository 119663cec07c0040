//! The processes of the demo: a gateway and a projector a view, each this very program.
//!
//! Each has a process group of its own, so that Ctrl-C reaches only the demo, which then ends them in its own time. Each
//! holds the demo's end of its standard input as a lifeline: however the demo ends, they end with it. What they log
//! goes to a file each, which is shown when one ends unasked.

use std::{
    ffi::OsString,
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail};
use tokio::process::{Child, ChildStdin, Command};

/// How long a process may take to flush and leave: above a projector's own deadline.
const STOP_DEADLINE: Duration = Duration::from_secs(30);

/// Between two looks whether one has ended.
const LOOK: Duration = Duration::from_secs(1);

/// Where a gateway listens if nobody else does.
const GATEWAY_PORT: u16 = 8080;

/// How much of a log is shown.
const LOG_TAIL_LINES: usize = 15;

/// Processes that live as long as this.
pub(super) struct Town {
    processes: Vec<Process>,
    logs: PathBuf,
}

struct Process {
    name: &'static str,
    child: Child,
    lifeline: Option<ChildStdin>,
    log: PathBuf,
}

impl Town {
    /// Nobody yet. Logs go to a folder of its own.
    pub(super) fn new() -> anyhow::Result<Self> {
        let logs = std::env::temp_dir().join(format!("tidemark-demo-{}", std::process::id()));
        std::fs::create_dir_all(&logs)
            .with_context(|| format!("cannot make {}", logs.display()))?;
        Ok(Self {
            processes: Vec::new(),
            logs,
        })
    }

    /// Starts one, with the demo's settings in its environment.
    pub(super) fn start(
        &mut self,
        name: &'static str,
        arguments: &[&str],
        listen: SocketAddr,
        environment: &[(&'static str, OsString)],
    ) -> anyhow::Result<()> {
        let program = std::env::current_exe().context("cannot tell where this program is")?;
        let log = self.logs.join(format!("{name}.log"));
        let output =
            File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let errors = output.try_clone().context("cannot share a log file")?;
        let mut child = Command::new(program)
            .args(arguments)
            .arg("--until-stdin-closes")
            .envs(environment.iter().cloned())
            .env("TIDEMARK_LISTEN", listen.to_string())
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start the {name}"))?;
        self.processes.push(Process {
            name,
            lifeline: child.stdin.take(),
            child,
            log,
        });
        Ok(())
    }

    /// Fails where one of them has ended.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        for process in &mut self.processes {
            if let Some(status) = process.child.try_wait()? {
                bail!(
                    "the {} ended ({status}); the end of its log:\n{}",
                    process.name,
                    tail(&process.log)
                );
            }
        }
        Ok(())
    }

    /// Waits until one of them has ended, and fails then.
    pub(super) async fn watch(&mut self) -> anyhow::Result<()> {
        loop {
            self.check()?;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Ends all of them: asks, waits, and kills what does not end in time.
    pub(super) async fn stop(mut self) {
        for process in &mut self.processes {
            drop(process.lifeline.take());
        }
        let deadline = tokio::time::Instant::now() + STOP_DEADLINE;
        for mut process in self.processes {
            let ended = tokio::time::timeout_at(deadline, process.child.wait()).await;
            if ended.is_err() {
                tracing::warn!(process = process.name, "did not end in time and is killed");
                let _ = process.child.kill().await;
            }
        }
        let _ = std::fs::remove_dir_all(&self.logs);
    }
}

fn tail(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
    tail.iter().map(|line| format!("  {line}\n")).collect()
}

/// An address for the gateway: the usual one, or one that is free.
pub(super) fn gateway_address() -> std::io::Result<SocketAddr> {
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, GATEWAY_PORT));
    match TcpListener::bind(usual) {
        Ok(_) => Ok(usual),
        Err(_) => free_address(),
    }
}

/// An address that is free now. Somebody else may take it before it is used; then the process says so and ends.
pub(super) fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
