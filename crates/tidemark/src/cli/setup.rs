//! `tidemark setup`.

use std::{num::NonZeroU16, time::Duration};

use clap::Args;

use crate::{
    outcome::Outcome,
    output::{Output, Table, counted, grouped},
    settings::{Settings, human::parse_duration},
    setup::{Report, Wishes, set_up, show_millis},
};

/// Make the log's topics and the views' tables
///
/// Makes what is missing, leaves alone what is there, and says which was which: it may be repeated, and run twice at
/// once. What an option says counts where something is made; where it is there otherwise, setup says so and exits
/// with 1, or refuses where it must never change.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidemark setup
  tidemark setup --partitions 128 --replication-factor 3 --min-insync-replicas 2 --cql-replication 3
  tidemark setup --dedupe-window '2 days' --inbox-ttl '90 days'")]
pub(crate) struct Setup {
    #[command(flatten)]
    kafka: KafkaOptions,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten)]
    views: ViewOptions,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Topics")]
struct KafkaOptions {
    /// Partitions of the log [default: 64]
    ///
    /// Bounds how many workers of a view can share the log. It never changes under a log.
    #[arg(
        long,
        env = "TIDEMARK_PARTITIONS",
        hide_env_values = true,
        value_name = "NUMBER"
    )]
    partitions: Option<NonZeroU16>,

    /// On how many brokers a record is stored [default: 3, or 1 where there is a single broker]
    #[arg(
        long,
        env = "TIDEMARK_REPLICATION_FACTOR",
        hide_env_values = true,
        value_name = "NUMBER"
    )]
    replication_factor: Option<NonZeroU16>,

    /// How many of them must have a record before its producer is told so [default: one less, but at least 1]
    #[arg(
        long,
        env = "TIDEMARK_MIN_INSYNC_REPLICAS",
        hide_env_values = true,
        value_name = "NUMBER"
    )]
    min_insync_replicas: Option<NonZeroU16>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The log, for ever")]
struct LogOptions {
    /// How long an accepted event id keeps its like from being accepted again, in log time [default: 24h]
    #[arg(long, env = "TIDEMARK_DEDUPE_WINDOW", hide_env_values = true, value_name = "DURATION", value_parser = parse_duration)]
    dedupe_window: Option<Duration>,

    /// And among how many of a conversation's newest ids [default: 100000]
    #[arg(
        long,
        env = "TIDEMARK_DEDUPE_IDS",
        hide_env_values = true,
        value_name = "NUMBER"
    )]
    dedupe_ids: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The views, until a rebuild")]
struct ViewOptions {
    /// On how many servers each row is kept [default: 3, or 1 where Kafka has a single broker]
    #[arg(
        long,
        env = "TIDEMARK_CQL_REPLICATION",
        hide_env_values = true,
        value_name = "NUMBER"
    )]
    cql_replication: Option<NonZeroU16>,

    /// Up to how many members a message is copied into each member's inbox [default: 20]
    #[arg(
        long,
        env = "TIDEMARK_COPY_LIMIT",
        hide_env_values = true,
        value_name = "MEMBERS"
    )]
    copy_limit: Option<u32>,

    /// Up to how many members each one's session row is brought up to date by every message [default: 500]
    #[arg(
        long,
        env = "TIDEMARK_FAN_OUT_LIMIT",
        hide_env_values = true,
        value_name = "MEMBERS"
    )]
    fan_out_limit: Option<u32>,

    /// Log time whose inbox copies expire together [default: 7d]
    #[arg(long, env = "TIDEMARK_INBOX_PERIOD", hide_env_values = true, value_name = "DURATION", value_parser = parse_duration)]
    inbox_period: Option<Duration>,

    /// How long they are kept after the end of their period [default: 30d]
    #[arg(long, env = "TIDEMARK_INBOX_TTL", hide_env_values = true, value_name = "DURATION", value_parser = parse_duration)]
    inbox_ttl: Option<Duration>,
}

impl Setup {
    pub(crate) async fn run(self, settings: &Settings) -> anyhow::Result<Outcome> {
        let report = set_up(settings, &self.wishes()).await?;
        self.output.print(&report, show)?;
        Ok(Outcome::difference_if(!report.differences.is_empty()))
    }

    fn wishes(&self) -> Wishes {
        Wishes {
            partitions: self.kafka.partitions,
            replication_factor: self.kafka.replication_factor,
            min_insync_replicas: self.kafka.min_insync_replicas,
            cql_replication: self.views.cql_replication,
            dedupe_window: self.log.dedupe_window,
            dedupe_ids: self.log.dedupe_ids,
            copy_limit: self.views.copy_limit,
            fan_out_limit: self.views.fan_out_limit,
            inbox_period: self.views.inbox_period,
            inbox_ttl: self.views.inbox_ttl,
        }
    }
}

fn show(report: &Report) -> String {
    let made = |made: bool| if made { "made" } else { "was there" }.to_owned();
    let mut table = Table::default();
    for topic in &report.topics {
        let partitions = counted(topic.partitions as u64, "partition");
        table.push([
            "topic".to_owned(),
            topic.name.clone(),
            made(topic.made),
            partitions,
        ]);
    }
    let window = format!(
        "event ids count for {} and among {}",
        show_millis(report.dedupe_window_ms),
        grouped(report.dedupe_ids)
    );
    table.push([
        "keyspace".to_owned(),
        report.keyspace.clone(),
        made(report.keyspace_made),
        window,
    ]);
    for view in &report.views {
        let settings = view
            .settings
            .iter()
            .map(|(name, value)| format!("{name} {value}"));
        let settings = settings.collect::<Vec<_>>().join(", ");
        let name = format!("{} {}", view.view, view.generation);
        table.push([
            "view".to_owned(),
            name,
            made(report.keyspace_made),
            settings,
        ]);
    }
    let mut text = table.show();
    for note in &report.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    for difference in &report.differences {
        text.push_str(&format!("difference: {difference}\n"));
    }
    text
}
