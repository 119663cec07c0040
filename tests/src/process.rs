//! Child processes: each in a group of its own, its output in a file, its end certain.
//!
//! However the tests end, by a failure, by Ctrl-C or by `kill -9`, nothing stays behind: a shell, the *reaper*, holds
//! the other end of a pipe from this process, and kills what it was told of once the pipe closes.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    io::Write,
    net::TcpListener,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        LazyLock, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{output::Output, wait::until};

/// A process under test.
#[derive(Debug)]
pub struct Process {
    name: String,
    address: String,
    child: Mutex<Child>,
    output: Mutex<Output>,
    was_ready: AtomicBool,
}

impl Process {
    /// Starts the binary with an address of its own to listen on, its output going to `folder`.
    pub(crate) fn start(
        name: &str,
        arguments: &[&str],
        environment: &BTreeMap<&'static str, String>,
        folder: &Path,
    ) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let path = (1..)
            .map(|nth| folder.join(format!("{name}-{nth}.log")))
            .find(|path| !path.exists())
            .expect("there are many numbers");
        let file = File::create_new(&path).expect("the log folder can be written");
        let mut command = command(arguments, environment, folder);
        command
            .env("TIDEMARK_LISTEN", &address)
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a file can be shared"))
            .stderr(file);
        let child = command.spawn().expect("the binary can be run");
        reaper(&format!("+ {}", child.id()));
        Self {
            name: name.to_owned(),
            address,
            child: Mutex::new(child),
            output: Mutex::new(Output::new(path)),
            was_ready: AtomicBool::new(false),
        }
    }

    /// What it was named.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `http://` and where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Asks one of its operators' pages: status and text; an error where it does not answer.
    pub async fn page(&self, path: &str) -> Result<(u16, String), String> {
        const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
        let client = reqwest::Client::new();
        let url = format!("{}{path}", self.url());
        let answer = client.get(url).timeout(ANSWERS_WITHIN).send().await;
        let answer = answer.map_err(|error| format!("{error:?}"))?;
        let status = answer.status().as_u16();
        let text = answer.text().await.map_err(|error| error.to_string())?;
        Ok((status, text))
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&self) {
        until(
            &format!("ready: {}", self.name),
            crate::PATIENCE,
            async || {
                if let Some(status) = self.ended() {
                    let output = self.output.lock().unwrap();
                    panic!("{} ended with {status}: {}", self.name, output.tail());
                }
                match self.page("/readyz").await {
                    Ok((200, _)) => Ok(()),
                    other => Err(other),
                }
            },
        )
        .await;
        self.was_ready.store(true, Ordering::Relaxed);
    }

    /// Waits until it says that it is not ready, and says why with all of these words.
    pub async fn not_ready(&self, words: &[&str]) {
        until(
            &format!("not ready: {}", self.name),
            crate::PATIENCE,
            async || match self.page("/readyz").await {
                Ok((503, text)) if words.iter().all(|word| text.contains(word)) => Ok(()),
                other => Err(format!("{other:?}, not yet all of {words:?}")),
            },
        )
        .await;
    }

    /// Whether it was ready once, when somebody waited for that.
    pub(crate) fn was_ready(&self) -> bool {
        self.was_ready.load(Ordering::Relaxed)
    }

    /// A metric's values, by labels as they stand in the text (`view="inbox",partition="3"`).
    pub async fn metric(&self, name: &str) -> BTreeMap<String, f64> {
        let (_, text) = self.page("/metrics").await.unwrap();
        let lines = text.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let labels = series
                .strip_prefix(name)?
                .strip_prefix('{')?
                .strip_suffix('}')?;
            Some((labels.to_owned(), value.parse().ok()?))
        });
        lines.collect()
    }

    /// The exit status, once it has ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child
            .lock()
            .unwrap()
            .try_wait()
            .expect("a child can be asked")
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&self) {
        let mut child = self.child.lock().unwrap();
        if child.try_wait().expect("a child can be asked").is_none() {
            signal("KILL", child.id());
        }
        child.wait().expect("a killed child ends");
        reaper(&format!("- {}", child.id()));
    }

    /// Stops it in the middle of whatever it does (SIGSTOP).
    pub fn freeze(&self) {
        signal("STOP", self.id());
    }

    /// Lets it go on (SIGCONT).
    pub fn thaw(&self) {
        signal("CONT", self.id());
    }

    /// Asks it to end (SIGTERM), and waits until it has.
    pub async fn terminate(&self) -> ExitStatus {
        signal("TERM", self.id());
        let status = until(
            &format!("ended: {}", self.name),
            crate::PATIENCE,
            async || self.ended().ok_or("it runs"),
        )
        .await;
        reaper(&format!("- {}", self.id()));
        status
    }

    /// As [`terminate`](Self::terminate), from where nothing can be awaited. Killed where it does not end in time.
    pub(crate) fn terminate_blocking(&self, patience: Duration) -> ExitStatus {
        signal("CONT", self.id());
        signal("TERM", self.id());
        let began = Instant::now();
        while began.elapsed() < patience {
            if let Some(status) = self.ended() {
                reaper(&format!("- {}", self.id()));
                return status;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.kill();
        ExitStatus::from_raw(9)
    }

    pub(crate) fn output(&self) -> &Mutex<Output> {
        &self.output
    }

    fn id(&self) -> u32 {
        self.child.lock().unwrap().id()
    }
}

/// Runs the binary to its end: its exit code, its standard output and its standard error.
pub fn run(
    arguments: &[&str],
    environment: &BTreeMap<&'static str, String>,
    input: &str,
) -> (i32, String, String) {
    let mut command = command(arguments, environment, &std::env::temp_dir());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary can be run");
    let id = child.id();
    reaper(&format!("+ {id}"));
    let mut stdin = child.stdin.take().expect("it was piped");
    let input = input.to_owned();
    // It may end without having read all, which is its own business.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("a child can be waited for");
    let _ = writer.join();
    reaper(&format!("- {id}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn command(
    arguments: &[&str],
    environment: &BTreeMap<&'static str, String>,
    folder: &Path,
) -> Command {
    let mut command = Command::new(binary());
    let foreign = |name: &OsStr| {
        let name = name.to_string_lossy();
        name.starts_with("TIDEMARK_") || name.starts_with("RUST_")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| foreign(name)) {
        command.env_remove(name);
    }
    // No tidemark.toml is there.
    command
        .args(arguments)
        .envs(environment)
        .current_dir(folder)
        .process_group(0);
    command
}

/// The binary under test: what TIDEMARK_BIN names, or what cargo builds beside these tests.
fn binary() -> &'static Path {
    static BINARY: LazyLock<PathBuf> = LazyLock::new(|| {
        if let Some(named) = std::env::var_os("TIDEMARK_BIN") {
            return std::path::absolute(named).expect("TIDEMARK_BIN is a path");
        }
        let profile = profile_folder();
        let mut build = Command::new(env!("CARGO"));
        // With the tests, as those were built: the same selection has the same features, so nothing is built twice.
        build
            .args(["build", "--quiet", "--workspace", "--bins", "--tests"])
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_cargos(name)) {
            build.env_remove(name);
        }
        if profile.ends_with("release") {
            build.arg("--release");
        }
        let built = build.status().expect("cargo can be run");
        assert!(built.success(), "tidemark cannot be built");
        profile.join("tidemark")
    });
    &BINARY
}

/// A variable that cargo sets for the tests it runs, and that would make another cargo build things again.
fn is_cargos(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_CRATE_",
        "CARGO_BIN_",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
        || name == "LD_LIBRARY_PATH"
}

/// The folder of the profile that these tests were built with, such as `target/debug`.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its file");
    let folder = test.parent().and_then(Path::parent);
    folder.expect("a test is in target/PROFILE/deps").to_owned()
}

/// A folder for what runs leave behind.
pub(crate) fn runs_folder() -> PathBuf {
    let folder = profile_folder().with_file_name("tmp").join("e2e");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// An empty folder for the logs of this run. Those of runs that have ended are forgotten.
pub(crate) fn log_folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().expect("a test knows its file");
        let test = test.file_stem().unwrap_or_default().to_string_lossy();
        let name = test.rsplit_once('-').map_or(&*test, |(name, _)| name);
        let runs = runs_folder().join(name);
        for earlier in runs.read_dir().into_iter().flatten().flatten() {
            if !Path::new("/proc").join(earlier.file_name()).exists() {
                let _ = std::fs::remove_dir_all(earlier.path());
            }
        }
        let folder = runs.join(std::process::id().to_string());
        std::fs::create_dir_all(&folder).expect("the target folder can be written");
        folder
    });
    &FOLDER
}

/// A port that nobody uses just now.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there are free ports");
    listener
        .local_addr()
        .expect("a listener has an address")
        .port()
}

/// Sends a signal to a process group. That it is gone already is no failure.
fn signal(name: &str, id: u32) {
    let group = format!("-{id}");
    let _ = Command::new("kill")
        .args(["-s", name, "--", &group])
        .stderr(Stdio::null())
        .status();
}

/// Tells the reaper of a process group that began (`+ ID`) or ended (`- ID`).
fn reaper(line: &str) {
    const SCRIPT: &str = r#"
        groups=' '
        while read -r what group; do
            case $what in
                +) groups="$groups$group " ;;
                -) groups="${groups%% $group *} ${groups#* $group }" ;;
            esac
        done
        for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
    "#;
    static REAPER: LazyLock<Mutex<ChildStdin>> = LazyLock::new(|| {
        let reaper = Command::new("sh")
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        Mutex::new(reaper.expect("sh can be run").stdin.expect("it was piped"))
    });
    let mut stdin = REAPER.lock().unwrap();
    writeln!(stdin, "{line}").expect("the reaper listens");
}
