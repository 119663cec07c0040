//! Makes the log's topics and the views' tables, and says what was there already.
//!
//! The order matters where something is there already. The topic's partitions are looked at first, since the store
//! must record the same number. The store is set up before a missing topic is made: where a view has folded a log
//! that is gone, a new topic of its name would pass for the old one, so none is made then.
//!
//! Safe to repeat: every step leaves alone what is there.

use std::{collections::BTreeMap, num::NonZeroU16, time::Duration};

use anyhow::{Context as _, bail};
use serde::Serialize;
use tidemark_event::{LOG_TOPIC, LogTopic, MAX_VALUE_BYTES, NextOffset, dead_letter_topic};
use tidemark_fold::{DedupeWindow, GenerationSettings, LogSettings, ViewName};
use tidemark_store::{Recorded, RecordedLog, SetupSettings, Store};

use crate::{
    kafka::{Cluster, TopicPlan},
    output::counted,
    release::FOLD_VERSION,
    settings::{Settings, human::show_duration},
};

/// The largest record that a dead-letter topic takes: any that a log can hold, and why it is there.
const DEAD_LETTER_BYTES: usize = 2 * MAX_VALUE_BYTES;

/// What is asked for. What is absent is as it is there, or as it is by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) partitions: Option<NonZeroU16>,
    pub(crate) replication_factor: Option<NonZeroU16>,
    pub(crate) min_insync_replicas: Option<NonZeroU16>,
    pub(crate) cql_replication: Option<NonZeroU16>,
    pub(crate) dedupe_window: Option<Duration>,
    pub(crate) dedupe_ids: Option<u64>,
    pub(crate) copy_limit: Option<u32>,
    pub(crate) fan_out_limit: Option<u32>,
    pub(crate) inbox_period: Option<Duration>,
    pub(crate) inbox_ttl: Option<Duration>,
}

/// What there is after a setup.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) topics: Vec<TopicReport>,
    pub(crate) keyspace: String,
    /// This call set the store up.
    pub(crate) keyspace_made: bool,
    pub(crate) partitions: u16,
    pub(crate) dedupe_window_ms: i64,
    pub(crate) dedupe_ids: u64,
    pub(crate) views: Vec<ViewReport>,
    /// What is there otherwise than was asked for.
    pub(crate) differences: Vec<String>,
    /// What somebody should know before this is used in earnest.
    pub(crate) notes: Vec<String>,
}

/// A topic that is there.
#[derive(Debug, Serialize)]
pub(crate) struct TopicReport {
    pub(crate) name: String,
    pub(crate) partitions: usize,
    /// This call made it.
    pub(crate) made: bool,
}

/// The active generation of a view, and the settings that it goes by.
#[derive(Debug, Serialize)]
pub(crate) struct ViewReport {
    pub(crate) view: ViewName,
    pub(crate) generation: u16,
    /// By the names of their options.
    pub(crate) settings: BTreeMap<&'static str, String>,
}

/// Makes what is missing.
///
/// # Errors
/// Kafka or the store failed, or what is there can never be what is asked for. What was made stays made.
pub(crate) async fn set_up(settings: &Settings, wishes: &Wishes) -> anyhow::Result<Report> {
    let cluster = Cluster::new(&settings.kafka)?;
    let brokers = cluster.brokers().await?;
    let found = cluster.partitions(LOG_TOPIC).await?;
    let store = Store::connect(&settings.store).await?;
    // A store that is not set up and one that fails look alike here. The latter fails again below.
    let recorded = store.log_settings().await.ok().flatten();

    let log = wishes.log(found, recorded.as_ref())?;
    let topic = wishes.topic(brokers, log.partitions)?;
    if found.is_none() {
        refuse_too_few_brokers(&topic, brokers)?;
    }
    let asked = SetupSettings {
        replication_factor: wishes.store_replication(brokers),
        log: RecordedLog {
            topic: LOG_TOPIC.to_owned(),
            topic_id: None,
            settings: log,
        },
        generations: ViewName::ALL.map(|view| (view, wishes.generation())).into(),
        fold_version: FOLD_VERSION,
    };
    let now = store
        .setup(&asked)
        .await
        .context("the store could not be set up")?;
    if found.is_none() {
        refuse_a_lost_log(&store).await?;
    }

    let topics = make_topics(&cluster, &topic).await?;
    let mut differences = wishes.view_differences(&now);
    if topics
        .iter()
        .any(|report| report.name == LOG_TOPIC && !report.made)
    {
        let there = cluster.topic_settings(LOG_TOPIC).await?;
        differences.extend(wishes.topic_differences(&topic, &there));
    }
    let views = now.active.iter().map(|(view, active)| ViewReport {
        view: *view,
        generation: active.no.get(),
        settings: wishes
            .compare(*view, &active.settings)
            .into_iter()
            .map(|(option, _, there)| (option.trim_start_matches('-'), there))
            .collect(),
    });
    Ok(Report {
        views: views.collect(),
        notes: notes(
            &topic,
            &topics,
            asked.replication_factor,
            recorded.is_none(),
        ),
        topics,
        keyspace: store.keyspace().to_owned(),
        keyspace_made: recorded.is_none(),
        partitions: log.partitions,
        dedupe_window_ms: log.dedupe.millis,
        dedupe_ids: log.dedupe.ids,
        differences,
    })
}

impl Wishes {
    /// A log of so many partitions, and everything else by default.
    pub(crate) fn partitions(partitions: u16) -> Self {
        Self {
            partitions: NonZeroU16::new(partitions),
            ..Self::default()
        }
    }

    /// The log's settings, for ever: as recorded, else as the topic is, else as asked for.
    fn log(
        &self,
        found: Option<usize>,
        recorded: Option<&RecordedLog>,
    ) -> anyhow::Result<LogSettings> {
        let asked = self.partitions.map(NonZeroU16::get);
        let recorded = recorded.map(|recorded| recorded.settings);
        if let (Some(found), Some(recorded)) = (found, recorded)
            && found != usize::from(recorded.partitions)
        {
            bail!(
                "{LOG_TOPIC} has {found} partitions, but the keyspace was set up for {}: keys have moved, and order \
                 with them. Restore the topic, or set up another keyspace for a log of its own",
                recorded.partitions
            );
        }
        let there = match (found, recorded) {
            (Some(found), _) => Some((u16::try_from(found).unwrap_or(u16::MAX), LOG_TOPIC)),
            (None, recorded) => {
                recorded.map(|recorded| (recorded.partitions, "the log of the keyspace"))
            }
        };
        if let (Some(asked), Some((there, whose))) = (asked, there)
            && asked != there
        {
            bail!(
                "--partitions is {asked}, but {whose} has {there}: the number of a log's partitions never changes"
            );
        }
        let there = there.map(|(partitions, _)| partitions);
        let default = LogTopic::default().partitions.get();
        let dedupe = recorded.map_or_else(DedupeWindow::default, |recorded| recorded.dedupe);
        Ok(LogSettings {
            partitions: asked.or(there).unwrap_or(default),
            // Another window than the recorded one is refused by the store, which knows best what it has.
            dedupe: DedupeWindow {
                millis: self.dedupe_window.map_or(dedupe.millis, millis),
                ids: self.dedupe_ids.unwrap_or(dedupe.ids),
            },
        })
    }

    fn generation(&self) -> GenerationSettings {
        let default = GenerationSettings::default();
        GenerationSettings {
            copy_limit: self.copy_limit.unwrap_or(default.copy_limit),
            fan_out_limit: self.fan_out_limit.unwrap_or(default.fan_out_limit),
            inbox_period_millis: self
                .inbox_period
                .map_or(default.inbox_period_millis, millis),
            inbox_ttl_millis: self.inbox_ttl.map_or(default.inbox_ttl_millis, millis),
            ..default
        }
    }

    fn topic(&self, brokers: usize, partitions: u16) -> anyhow::Result<LogTopic> {
        let default = LogTopic::default();
        let Some(partitions) = NonZeroU16::new(partitions) else {
            bail!("the keyspace was set up for a log of no partitions");
        };
        let replication_factor = self.replication_factor.unwrap_or(if brokers == 1 {
            NonZeroU16::MIN
        } else {
            default.replication_factor
        });
        let one_less = NonZeroU16::new(replication_factor.get() - 1).unwrap_or(NonZeroU16::MIN);
        let min_insync_replicas = self.min_insync_replicas.unwrap_or(one_less);
        if min_insync_replicas > replication_factor {
            bail!(
                "--min-insync-replicas is {min_insync_replicas}, more than the replication factor, \
                 {replication_factor}: nothing could be appended"
            );
        }
        Ok(LogTopic {
            partitions,
            replication_factor,
            min_insync_replicas,
            ..default
        })
    }

    fn store_replication(&self, brokers: usize) -> u16 {
        /// One server may be lost, and reads and writes at LOCAL_QUORUM go on.
        const DEFAULT: u16 = 3;
        let default = if brokers == 1 { 1 } else { DEFAULT };
        self.cql_replication.map_or(default, NonZeroU16::get)
    }

    /// Where a view's active generation is not what was asked for: a rebuild would make it so.
    fn view_differences(&self, now: &Recorded) -> Vec<String> {
        let mut differences = Vec::new();
        for (view, active) in &now.active {
            for (option, asked, there) in self.compare(*view, &active.settings) {
                if let Some(asked) = asked.filter(|asked| *asked != there) {
                    differences.push(format!(
                        "{option} is {asked}, but {view} generation {} was built with {there}: a rebuild changes it",
                        active.no
                    ));
                }
            }
        }
        differences
    }

    /// The options that a view goes by, as asked for and as they are there.
    fn compare(
        &self,
        view: ViewName,
        there: &GenerationSettings,
    ) -> Vec<(&'static str, Option<String>, String)> {
        let number = |asked: Option<u32>| asked.map(|asked| asked.to_string());
        match view {
            ViewName::Roaming => Vec::new(),
            ViewName::Sessions => vec![(
                "--fan-out-limit",
                number(self.fan_out_limit),
                there.fan_out_limit.to_string(),
            )],
            ViewName::Inbox => vec![
                (
                    "--copy-limit",
                    number(self.copy_limit),
                    there.copy_limit.to_string(),
                ),
                (
                    "--inbox-period",
                    self.inbox_period.map(show_duration),
                    show_millis(there.inbox_period_millis),
                ),
                (
                    "--inbox-ttl",
                    self.inbox_ttl.map(show_duration),
                    show_millis(there.inbox_ttl_millis),
                ),
            ],
        }
    }

    /// Where a topic that was there is not set as a log must be, or as was asked for.
    fn topic_differences(&self, topic: &LogTopic, there: &BTreeMap<String, String>) -> Vec<String> {
        /// Settings that a log may well have otherwise, unless they were asked for.
        const FREE: [&str; 2] = ["max.message.bytes", "min.insync.replicas"];
        let mut differences = Vec::new();
        for (name, wanted) in topic.settings() {
            let is_asked = name == "min.insync.replicas" && self.min_insync_replicas.is_some();
            if FREE.contains(&name) && !is_asked {
                continue;
            }
            let found = there.get(name).map_or("unknown", String::as_str);
            if found != wanted {
                differences.push(format!("{LOG_TOPIC} has {name}={found}, not {wanted}"));
            }
        }
        differences
    }
}

/// Refuses before anything is made for a log that Kafka would not make.
fn refuse_too_few_brokers(topic: &LogTopic, brokers: usize) -> anyhow::Result<()> {
    let replicas = topic.replication_factor.get();
    if usize::from(replicas) > brokers {
        bail!(
            "{replicas} replicas need as many brokers, and Kafka has {brokers} now: start the others, or choose \
             --replication-factor"
        );
    }
    Ok(())
}

/// Refuses where a view has folded records of a log whose topic is not there.
async fn refuse_a_lost_log(store: &Store) -> anyhow::Result<()> {
    for view in ViewName::ALL {
        for generation in store.generations(view).await? {
            let checkpoints = store.checkpoints(view, generation.no).await?;
            let folded = checkpoints
                .into_iter()
                .find(|(_, checkpoint)| checkpoint.next_offset > NextOffset::START);
            if let Some((partition, checkpoint)) = folded {
                bail!(
                    "{LOG_TOPIC} is not there, but {view} generation {} has folded its partition {partition} up to \
                     offset {}: restore the topic, or set up another keyspace for a new log",
                    generation.no,
                    checkpoint.next_offset
                );
            }
        }
    }
    Ok(())
}

/// Makes the log's topic and a dead-letter topic a view.
async fn make_topics(cluster: &Cluster, topic: &LogTopic) -> anyhow::Result<Vec<TopicReport>> {
    let log = TopicPlan {
        name: LOG_TOPIC.to_owned(),
        partitions: topic.partitions.get(),
        replication_factor: topic.replication_factor.get(),
        settings: topic.settings(),
    };
    let mut plans = vec![log];
    plans.extend(ViewName::ALL.map(|view| dead_letter_plan(view, topic)));
    let mut reports = Vec::new();
    for plan in plans {
        let there = cluster.partitions(&plan.name).await?;
        let made = there.is_none() && cluster.create(&plan).await?;
        reports.push(TopicReport {
            name: plan.name,
            partitions: there.unwrap_or(usize::from(plan.partitions)),
            made,
        });
    }
    Ok(reports)
}

/// Dead letters are kept like the log's records, and are few: one partition keeps them in one order.
fn dead_letter_plan(view: ViewName, topic: &LogTopic) -> TopicPlan {
    let mut settings = topic.settings();
    settings.retain(|(name, _)| *name != "max.message.bytes");
    settings.push(("max.message.bytes", DEAD_LETTER_BYTES.to_string()));
    TopicPlan {
        name: dead_letter_topic(view.as_str()),
        partitions: 1,
        replication_factor: topic.replication_factor.get(),
        settings,
    }
}

fn notes(
    topic: &LogTopic,
    topics: &[TopicReport],
    store_replication: u16,
    keyspace_made: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    if topics.iter().any(|topic| topic.made) && topic.min_insync_replicas.get() == 1 {
        notes.push(format!(
            "an acknowledged record may be on one broker only (replication factor {}, min.insync.replicas 1): \
             enough for trying things, not to keep messages",
            topic.replication_factor
        ));
    }
    if keyspace_made && store_replication < 3 {
        let servers = counted(store_replication, "server");
        notes.push(format!(
            "the views are kept on {servers}: the loss of one stops them"
        ));
    }
    notes
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Milliseconds as somebody would have asked for them.
pub(crate) fn show_millis(millis: i64) -> String {
    show_duration(Duration::from_millis(
        u64::try_from(millis).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests;
