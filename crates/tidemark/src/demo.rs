//! A made-up workplace whose messages go all the way: told, appended, folded, served, and held against the story.
//!
//! Everything is as an operator would have it: topics and tables by a setup, a gateway and three projectors as
//! processes of their own, events through Kafka, answers through HTTP. Only the log's emptiness is insisted on.

mod answers;
mod check;
mod screen;
pub(crate) mod story;
mod town;

use std::{
    io::Write as _,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use jiff::Timestamp;
use reqwest::Client;
use serde::de::DeserializeOwned;
use tidemark_audit::{AuditSettings, Report};
use tidemark_event::{LOG_TOPIC, Seq};
use tidemark_fold::ViewName;
use tidemark_store::Store;
use tokio_util::sync::CancellationToken;

use self::{
    answers::{Mentions, Sync},
    check::differences,
    screen::Screen,
    story::{Promise, Story},
    town::{Town, free_address, gateway_address},
};
use crate::{
    append,
    cli::audit::run_audit,
    kafka::Cluster,
    lag,
    outcome::Outcome,
    output::counted,
    progress,
    settings::Settings,
    setup::{Wishes, set_up},
};

/// Partitions of the demo's log: enough to share, few enough for a small machine.
const PARTITIONS: u16 = 8;

/// How long the gateway may take until it is ready.
const READY_DEADLINE: Duration = Duration::from_secs(60);
/// How long the views may stand still while they have lag.
const STANDSTILL: Duration = Duration::from_secs(60);
/// Between two looks at something that is waited for.
const LOOK: Duration = Duration::from_millis(200);

/// How many events at the story's end are appended one by one. A list of sessions is in the order of log time, which
/// the broker gives to the millisecond and to all that it takes at once: together, the newest would all be equal.
const ONE_BY_ONE: usize = 600;

/// How many sessions the first screen has.
const FIRST_SCREEN: usize = 20;

/// What the demo is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// What the story follows from.
    pub(crate) seed: u64,
    /// Where the gateway is to listen.
    pub(crate) listen: Option<SocketAddr>,
    /// End when the story has been told and checked.
    pub(crate) once: bool,
}

/// Runs the demo until it is told to stop, or has done what it is for.
///
/// # Errors
/// Something failed on the way. Its processes are ended in any case.
pub(crate) async fn run(
    mut settings: Settings,
    wanted: &Wanted,
    shutdown: &CancellationToken,
) -> anyhow::Result<Outcome> {
    let wishes = wishes(&Cluster::new(&settings.kafka)?).await?;
    settings.use_keyspace(format!("tidemark_demo_{}", Timestamp::now().as_second()));
    let mut town = Town::new()?;
    let outcome = tokio::select! {
        () = shutdown.cancelled() => Ok(None),
        outcome = perform(&settings, &wishes, wanted, &mut town) => outcome.map(Some),
    };
    town.stop().await;
    // Who asked for a check has not got it.
    Ok(outcome?.unwrap_or(Outcome::difference_if(wanted.once)))
}

/// What is to be set up. The story is for a log of its own: nobody wants it among their messages.
async fn wishes(cluster: &Cluster) -> anyhow::Result<Wishes> {
    let Some(partitions) = cluster.partitions(LOG_TOPIC).await? else {
        return Ok(Wishes::partitions(PARTITIONS));
    };
    let partitions = u16::try_from(partitions).unwrap_or(u16::MAX);
    let ends = cluster.ends(LOG_TOPIC, partitions).await?;
    let records: i64 = ends.values().map(|end| end.get()).sum();
    if records > 0 {
        bail!(
            "{LOG_TOPIC} has had {records} records already, and the demo tells a story of its own: run `make demo`, \
             which brings servers for it, or name empty ones by --kafka and --cql"
        );
    }
    Ok(Wishes::default())
}

async fn perform(
    settings: &Settings,
    wishes: &Wishes,
    wanted: &Wanted,
    town: &mut Town,
) -> anyhow::Result<Outcome> {
    let waiting = progress::spinner("making topics and tables");
    set_up(settings, wishes).await?;
    let gateway = match wanted.listen {
        Some(listen) => listen,
        None => gateway_address().context("no address is free for the gateway")?,
    };
    waiting.say("starting a gateway and three projectors");
    start(settings, gateway, town)?;
    let caller = Caller::new(gateway)?;
    caller.wait_until_ready(town).await?;
    drop(waiting);

    let story = story::tell(Timestamp::now().as_millisecond(), wanted.seed);
    let store = Store::connect(&settings.store).await?;
    let appended = load(settings, &store, &story, town).await?;
    let caught_up = wait_for_views(settings, &store, &story, town).await?;
    say(&format!(
        "{} told in {:.1} s, in all views after {:.1} s\n\n",
        counted(story.events.len() as u64, "event"),
        appended.as_secs_f64(),
        caught_up.as_secs_f64()
    ))?;

    let seen = Seen::ask(&caller, &story.promise).await?;
    let screen = seen.screen(&story.promise).show();
    say(&format!("Mira comes back after five days:\n\n{screen}\n"))?;
    let differences = differences(&story.promise, &seen.all, &seen.mentions.0);
    say(&show_check(&story.promise, &differences))?;
    let audited = Instant::now();
    let report = run_audit(settings, &store, &AuditSettings::default()).await?;
    say(&show_audit(&report, audited.elapsed()))?;
    if !wanted.once {
        say(&what_next(settings, gateway, &story.promise, &seen))?;
        town.watch().await?;
    }
    Ok(Outcome::difference_if(
        !differences.is_empty() || !report.is_clean(),
    ))
}

/// What the audit found: one line where all is well, the whole report where it is not.
fn show_audit(report: &Report, took: Duration) -> String {
    if !report.is_clean() {
        return format!("{report}\n\n");
    }
    let rows: u64 = report.views.iter().map(|view| view.compared.rows).sum();
    format!(
        "Audit: {} in three views held against the log in {:.1} s, no difference.\n\n",
        counted(rows, "row"),
        took.as_secs_f64()
    )
}

/// Prints, in colours on a terminal.
fn say(text: &str) -> std::io::Result<()> {
    anstream::stdout().lock().write_all(text.as_bytes())
}

fn start(settings: &Settings, gateway: SocketAddr, town: &mut Town) -> anyhow::Result<()> {
    let environment = &settings.environment;
    town.start("gateway", &["gateway"], gateway, environment)?;
    for view in ViewName::ALL {
        let listen = free_address().context("no address is free for a projector")?;
        town.start(
            view.as_str(),
            &["project", view.as_str()],
            listen,
            environment,
        )?;
    }
    Ok(())
}

/// Appends the story.
async fn load(
    settings: &Settings,
    store: &Store,
    story: &Story,
    town: &mut Town,
) -> anyhow::Result<Duration> {
    let appender = append::open(&settings.kafka, store).await?;
    let began = Instant::now();
    let bar = progress::bar(story.events.len() as u64, "events");
    let together = story.events.len().saturating_sub(ONE_BY_ONE);
    let (together, one_by_one) = story.events.split_at(together);
    for chunk in together.chunks(append::CHUNK).chain(one_by_one.chunks(1)) {
        append::append_in_order(&appender, chunk).await?;
        bar.advance(chunk.len() as u64);
        town.check()?;
    }
    Ok(began.elapsed())
}

/// Waits until every view has folded all of the story.
async fn wait_for_views(
    settings: &Settings,
    store: &Store,
    story: &Story,
    town: &mut Town,
) -> anyhow::Result<Duration> {
    let cluster = Cluster::new(&settings.kafka)?;
    let began = Instant::now();
    let total = story.events.len() as u64 * ViewName::ALL.len() as u64;
    let bar = progress::bar(total, "events folded into views");
    let (mut least, mut moved) = (u64::MAX, Instant::now());
    loop {
        town.check()?;
        let lags = lag::look(store, &cluster).await?;
        let behind: u64 = lags.active().map(|generation| generation.lag).sum();
        bar.reach(total.saturating_sub(behind));
        if behind == 0 {
            return Ok(began.elapsed());
        }
        if behind < least {
            (least, moved) = (behind, Instant::now());
        } else if moved.elapsed() > STANDSTILL {
            bail!("the views stand still, {behind} records behind the log");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What the returning user sees, with the time that each answer took.
struct Seen {
    first: (Sync, Duration),
    mentions: (Mentions, Duration),
    /// All of her sessions.
    all: Sync,
}

impl Seen {
    async fn ask(caller: &Caller, promise: &Promise) -> anyhow::Result<Self> {
        let user = promise.user.as_str();
        let first = format!("/v1/sync?sessions={FIRST_SCREEN}&messages=1");
        let first = caller.get(user, &first).await?;
        let mentions = caller.get(user, "/v1/mentions").await?;
        let (all, _) = caller.get(user, "/v1/sync?sessions=200&messages=0").await?;
        Ok(Self {
            first,
            mentions,
            all,
        })
    }

    fn screen<'a>(&'a self, promise: &'a Promise) -> Screen<'a> {
        Screen {
            sync: &self.first.0,
            sync_took: self.first.1,
            mentions: &self.mentions.0,
            mentions_took: self.mentions.1,
            further: self
                .all
                .sessions
                .len()
                .saturating_sub(self.first.0.sessions.len()),
            peers: &promise.peers,
            now: Timestamp::now(),
        }
    }
}

fn show_check(promise: &Promise, differences: &[String]) -> String {
    if differences.is_empty() {
        return format!(
            "As the story promised: {} unread in 40 groups, {} in direct chats, {} mentions by name.\n",
            promise.unread_in_groups,
            promise.unread_in_directs,
            promise.mentions.len()
        );
    }
    differences
        .iter()
        .map(|difference| format!("difference: {difference}\n"))
        .collect()
}

/// Asks the gateway.
struct Caller {
    client: Client,
    address: SocketAddr,
}

impl Caller {
    fn new(address: SocketAddr) -> anyhow::Result<Self> {
        let client = Client::builder().timeout(READY_DEADLINE).no_proxy().build();
        Ok(Self {
            client: client.context("cannot make an HTTP client")?,
            address,
        })
    }

    async fn wait_until_ready(&self, town: &mut Town) -> anyhow::Result<()> {
        let url = format!("http://{}/readyz", self.address);
        let began = Instant::now();
        loop {
            town.check()?;
            let answer = self.client.get(&url).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if began.elapsed() > READY_DEADLINE {
                bail!(
                    "the gateway at {} is not ready after {} s",
                    self.address,
                    READY_DEADLINE.as_secs()
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Gets a path as a user, and says how long that took, the whole answer read.
    async fn get<T: DeserializeOwned>(
        &self,
        user: &str,
        path: &str,
    ) -> anyhow::Result<(T, Duration)> {
        let began = Instant::now();
        let request = self
            .client
            .get(format!("http://{}{path}", self.address))
            .header("X-User", user);
        let answer = request
            .send()
            .await
            .with_context(|| format!("cannot get {path}"))?;
        let status = answer.status();
        let body = answer
            .bytes()
            .await
            .with_context(|| format!("cannot read the answer to {path}"))?;
        let took = began.elapsed();
        if !status.is_success() {
            bail!(
                "{path} was answered with {status}: {}",
                String::from_utf8_lossy(&body)
            );
        }
        let answer = serde_json::from_slice(&body)
            .with_context(|| format!("the answer to {path} is not what it should be"))?;
        Ok((answer, took))
    }
}

/// Calls that work in another terminal, as long as the demo stays.
fn what_next(settings: &Settings, gateway: SocketAddr, promise: &Promise, seen: &Seen) -> String {
    let (user, device) = (&promise.user, &promise.device);
    let mention = promise.mentions.first().and_then(|(conversation, seq)| {
        let sessions = &seen.all.sessions;
        let session = sessions
            .iter()
            .find(|session| session.conversation_id == *conversation)?;
        Some((conversation.as_str(), *seq, session.last_seq))
    });
    let (conversation, seq, last) = mention.unwrap_or(("lunch", Seq::FIRST, Seq::FIRST));
    let variables: Vec<String> = ["TIDEMARK_KAFKA", "TIDEMARK_CQL", "TIDEMARK_KEYSPACE"]
        .iter()
        .filter_map(|name| {
            let (_, value) = settings
                .environment
                .iter()
                .find(|(known, _)| known == name)?;
            Some(format!("{name}={}", value.display()))
        })
        .collect();
    let variables = variables.join(" ");
    format!(
        "
What to try in another terminal:
  # what is around the oldest mention
  curl -H 'X-User: {user}' 'http://{gateway}/v1/conversations/{conversation}/messages?around={seq}&limit=5'
  # what her laptop has not stored yet
  curl -H 'X-User: {user}' 'http://{gateway}/v1/inbox?device={device}&limit=3'
  # say something, and be told its seq
  curl -H 'X-User: {user}' -H 'Content-Type: application/json' -d '{{\"body\": \"I am back!\"}}' \\
       'http://{gateway}/v1/conversations/lunch/messages?wait=2'
  # read a group to its end: its unread and mentions go
  curl -X PUT -H 'X-User: {user}' -H 'Content-Type: application/json' -d '{{\"seq\": {last}}}' \\
       http://{gateway}/v1/conversations/{conversation}/read
  curl -H 'X-User: {user}' 'http://{gateway}/v1/sessions?filter=unread&limit=3'
  # how far the views are
  {variables} tidemark views

Ctrl-C ends the demo.
"
    )
}
