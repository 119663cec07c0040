//! Brings logs of other systems into the log: files side by side, each in its own order.

pub(crate) mod irc;
pub(crate) mod resume;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use anyhow::{Context as _, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::civil::Date;
use tidemark_event::{ConversationId, Event, Partition, partition_of};
use tidemark_gateway::Appender;
use tidemark_store::Store;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{
    irc::{Channel, Counts, Transcript, Unreadable},
    resume::{Record, held_events},
};
use crate::{
    append, kafka::Cluster, lag::recorded_log, outcome::UsageError, progress::Progress,
    settings::Settings,
};

/// The largest file that is read: it is held whole.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// How many times a second a bounded rate is made up for.
const STEPS_PER_SECOND: u64 = 20;

/// How an import goes about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// The most events a second.
    pub(crate) rate: Option<u64>,
    /// Files at a time.
    pub(crate) parallel: usize,
}

/// A file of an IRC channel's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) file: PathBuf,
    pub(crate) channel: Channel,
}

/// What became of one file, or of several together.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    pub(crate) counts: Counts,
    /// Events appended by this call.
    pub(crate) appended: u64,
    /// Events that the log had already.
    pub(crate) held: u64,
    /// The first lines that could not be read, with their files.
    pub(crate) unreadable: Vec<(PathBuf, Unreadable)>,
}

impl Source {
    /// The file of a channel; its name must be its date.
    ///
    /// # Errors
    /// It is not, or the channel's name cannot be part of a conversation's id.
    pub(crate) fn new(file: &Path, channel: &str) -> Result<Self, UsageError> {
        let name = channel.trim_start_matches('#').to_owned();
        let stem = file.file_stem().and_then(|stem| stem.to_str());
        let date = stem.and_then(|stem| stem.parse::<Date>().ok());
        let Some(date) = date else {
            let problem = format!(
                "{}: a log's file is named by its date, as in 2005-02-27.txt",
                file.display()
            );
            return Err(UsageError(problem));
        };
        let conversation = ConversationId::new(format!("irc-{name}-{date}"))
            .map_err(|error| UsageError(format!("--channel {channel:?}: {error}")))?;
        Ok(Self {
            file: file.to_owned(),
            channel: Channel {
                conversation,
                name,
                date,
            },
        })
    }

    fn read(&self) -> anyhow::Result<Transcript> {
        let failed = || format!("cannot read {}", self.file.display());
        let bytes = std::fs::metadata(&self.file).with_context(failed)?.len();
        if bytes > MAX_FILE_BYTES {
            bail!(
                "{} has {bytes} bytes, more than {MAX_FILE_BYTES}: split it by day",
                self.file.display()
            );
        }
        let log = std::fs::read(&self.file).with_context(failed)?;
        Ok(irc::read(&log, &self.channel))
    }
}

/// Refuses files that would become one conversation.
///
/// # Errors
/// Names two of them.
pub(crate) fn refuse_doubles(sources: &[Source]) -> Result<(), UsageError> {
    let mut conversations = BTreeSet::new();
    for source in sources {
        let conversation = source.channel.conversation.as_str();
        if !conversations.insert(conversation) {
            return Err(UsageError(format!(
                "more than one file would become {conversation}"
            )));
        }
    }
    Ok(())
}

/// Imports files. What is in the log already is left out.
///
/// # Errors
/// A file could not be read, the log could not be appended to, `shutdown` came, or nobody can say what is in the log
/// already. What was appended stays: to import again goes on from there.
pub(crate) async fn import(
    settings: &Settings,
    sources: &[Source],
    pace: Pace,
    progress: &Progress,
    shutdown: &CancellationToken,
) -> anyhow::Result<Imported> {
    let store = Store::connect(&settings.store).await?;
    let cluster = Cluster::new(&settings.kafka)?;
    let log = recorded_log(&store).await?;
    let appender = append::open(&settings.kafka, &store).await?;
    let partition =
        |source: &Source| partition_of(&source.channel.conversation, appender.partitions());
    let partitions: Vec<Partition> = sources.iter().map(partition).collect();
    progress.say("waiting for roaming to tell what it holds");
    let record = Record::open(&store, &cluster, &log, &partitions).await?;
    progress.say("");

    let importer = Importer {
        appender,
        record,
        meter: Meter::new(pace.rate),
        progress,
        shutdown,
    };
    let imports = stream::iter(sources).map(|source| importer.import(source));
    imports
        .buffer_unordered(pace.parallel.max(1))
        .try_fold(Imported::default(), async |mut all, one| {
            all.add(one);
            Ok(all)
        })
        .await
}

impl Imported {
    fn add(&mut self, other: Self) {
        self.counts += other.counts;
        self.appended += other.appended;
        self.held += other.held;
        self.unreadable.extend(other.unreadable);
    }
}

struct Importer<'a> {
    appender: Appender,
    record: Record,
    meter: Meter,
    progress: &'a Progress,
    shutdown: &'a CancellationToken,
}

impl Importer<'_> {
    async fn import(&self, source: &Source) -> anyhow::Result<Imported> {
        let reading = source.clone();
        let transcript = tokio::task::spawn_blocking(move || reading.read()).await??;
        let held = self.record.held(&source.channel.conversation).await?;
        let held = held_events(&transcript.events, &held)?;
        let missing = &transcript.events[held..];
        self.progress.expect_more(missing.len() as u64);
        self.append(missing, source).await?;
        let unreadable = transcript.unreadable.into_iter();
        Ok(Imported {
            counts: transcript.counts,
            appended: missing.len() as u64,
            held: held as u64,
            unreadable: unreadable.map(|line| (source.file.clone(), line)).collect(),
        })
    }

    async fn append(&self, events: &[Event], source: &Source) -> anyhow::Result<()> {
        for chunk in events.chunks(self.meter.chunk()) {
            self.meter.wait_for(chunk.len() as u64).await;
            if self.shutdown.is_cancelled() {
                bail!("interrupted: what was appended stays, import again to go on");
            }
            append::append_in_order(&self.appender, chunk)
                .await
                .with_context(|| {
                    format!(
                        "{} was not imported to its end: what was appended stays, import again to go on",
                        source.file.display()
                    )
                })?;
            self.progress.advance(chunk.len() as u64);
        }
        Ok(())
    }
}

/// Holds several at a time to one rate together.
struct Meter {
    rate: Option<u64>,
    began: Instant,
    granted: AtomicU64,
}

impl Meter {
    fn new(rate: Option<u64>) -> Self {
        Self {
            rate: rate.filter(|rate| *rate > 0),
            began: Instant::now(),
            granted: AtomicU64::new(0),
        }
    }

    /// How many to ask for at once: few enough that they come evenly.
    fn chunk(&self) -> usize {
        let even = self.rate.map(|rate| rate / STEPS_PER_SECOND);
        let even = even.map(|even| usize::try_from(even).unwrap_or(usize::MAX));
        even.map_or(append::CHUNK, |even| even.clamp(1, append::CHUNK))
    }

    /// Waits until so many more are due.
    async fn wait_for(&self, count: u64) {
        let before = self.granted.fetch_add(count, Ordering::Relaxed);
        if let Some(rate) = self.rate {
            let due = Duration::from_secs_f64(before as f64 / rate as f64);
            tokio::time::sleep_until(self.began + due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_name_is_its_date_and_with_the_channel_its_conversation() {
        let source = Source::new(Path::new("/logs/2005-02-27.txt"), "#ubuntu").unwrap();
        assert_eq!(
            source.channel.conversation.as_str(),
            "irc-ubuntu-2005-02-27"
        );
        assert_eq!(source.channel.name, "ubuntu");
        assert_eq!(source.channel.date, Date::constant(2005, 2, 27));
        for file in ["ubuntu.txt", "2005-02-30.txt", "", ".."] {
            assert!(Source::new(Path::new(file), "ubuntu").is_err(), "{file}");
        }
        assert!(Source::new(Path::new("2005-02-27"), "a\u{7}").is_err());
    }

    #[test]
    fn two_files_of_one_conversation_are_refused() {
        let source = |file: &str| Source::new(Path::new(file), "tea").unwrap();
        assert!(refuse_doubles(&[source("a/2005-02-27.txt"), source("a/2005-02-28.txt")]).is_ok());
        assert!(refuse_doubles(&[source("a/2005-02-27.txt"), source("b/2005-02-27.log")]).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_holds_for_all_together() {
        let meter = Meter::new(Some(100));
        assert_eq!(meter.chunk(), 5);
        let began = Instant::now();
        let one = async {
            for _ in 0..20 {
                meter.wait_for(5).await;
            }
        };
        let other = async {
            for _ in 0..20 {
                meter.wait_for(5).await;
            }
        };
        tokio::join!(one, other);
        // The last 5 of 200 are granted when 195 are done.
        assert_eq!(began.elapsed(), Duration::from_millis(1_950));
    }

    #[test]
    fn without_a_rate_chunks_are_large_and_with_one_never_empty() {
        assert_eq!(Meter::new(None).chunk(), append::CHUNK);
        assert_eq!(Meter::new(Some(0)).chunk(), append::CHUNK);
        assert_eq!(Meter::new(Some(1)).chunk(), 1);
        assert_eq!(Meter::new(Some(u64::MAX)).chunk(), append::CHUNK);
    }
}
