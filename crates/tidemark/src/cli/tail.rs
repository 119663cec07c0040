//! `tidemark tail`.

use std::{
    collections::BTreeSet,
    io::{BufWriter, Stdout, Write},
};

use anyhow::Context as _;
use clap::Args;
use rdkafka::{
    Message, TopicPartitionList,
    consumer::{Consumer as _, StreamConsumer},
    error::{KafkaError, RDKafkaErrorCode},
    message::BorrowedMessage,
    topic_partition_list::Offset as KafkaOffset,
};
use serde_json::{Value, json};
use tidemark_event::{LOG_TOPIC, decode, kafka::SelfAssigned, rfc3339, to_json};

use crate::{
    kafka::Cluster,
    outcome::{Outcome, UsageError, describe},
    output::counted,
    settings::Settings,
    shutdown,
};

/// Never joined: a consumer must name a group.
const GROUP: &str = "tidemark-tail";

/// Print the log, decoded, one JSON object a line
///
/// Each line has partition, offset, log_time (when the broker appended it) and the event, or what is wrong with the
/// record where it is none. Records of one partition come in their order, those of several as they arrive. Ends at
/// the log's end, unless told to follow it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidemark tail --limit 10
  tidemark tail --from-end
  tidemark tail --partition 3 --events | grep MessageSent")]
pub(crate) struct Tail {
    /// Only this partition; may be repeated [default: all]
    #[arg(long = "partition", value_name = "NUMBER")]
    partitions: Vec<u16>,

    /// Go on with what is appended from now on
    #[arg(long, short)]
    follow: bool,

    /// Only what is appended from now on
    #[arg(long)]
    from_end: bool,

    /// End after so many records
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u64>,

    /// Print the events alone, as `tidemark produce` takes them, and nothing where a record is none
    #[arg(long)]
    events: bool,
}

impl Tail {
    pub(crate) async fn run(self, settings: &Settings) -> anyhow::Result<Outcome> {
        let shutdown = shutdown::on_signals()?;
        let mut reading = self.partitions(settings).await?;
        let consumer = self.consumer(settings, &reading)?;
        let goes_on = self.follow || self.from_end;
        let mut printer = Printer::new(self.events);
        while !reading.is_empty() && self.limit.is_none_or(|limit| printer.printed < limit) {
            let received = tokio::select! {
                () = shutdown.cancelled() => break,
                received = consumer.recv() => received,
            };
            match received {
                Ok(message) => printer.print(&message)?,
                Err(KafkaError::PartitionEOF(partition)) => {
                    printer.output.flush()?;
                    if !goes_on {
                        reading.remove(&partition);
                    }
                }
                Err(error) if is_passing(&error) => {
                    tracing::warn!(%error, "Kafka does not answer, trying again");
                }
                Err(error) => return Err(error).context("cannot read on"),
            }
        }
        printer.output.flush()?;
        if printer.left_out > 0 {
            let records = counted(printer.left_out, "record");
            eprintln!("{records} left out, which cannot be decoded");
        }
        Ok(Outcome::difference_if(printer.left_out > 0))
    }

    async fn partitions(&self, settings: &Settings) -> anyhow::Result<BTreeSet<i32>> {
        let cluster = Cluster::new(&settings.kafka)?;
        let count = cluster.partitions(LOG_TOPIC).await?;
        let count = count
            .with_context(|| format!("there is no topic {LOG_TOPIC}: run `tidemark setup`"))?;
        if let Some(absent) = self
            .partitions
            .iter()
            .find(|partition| usize::from(**partition) >= count)
        {
            let problem = format!(
                "{LOG_TOPIC} has no partition {absent}: they go from 0 to {}",
                count - 1
            );
            return Err(UsageError(problem).into());
        }
        let asked = self.partitions.iter().copied().map(i32::from);
        let all = (0..count).filter_map(|partition| i32::try_from(partition).ok());
        Ok(if self.partitions.is_empty() {
            all.collect()
        } else {
            asked.collect()
        })
    }

    fn consumer(
        &self,
        settings: &Settings,
        partitions: &BTreeSet<i32>,
    ) -> anyhow::Result<StreamConsumer<SelfAssigned>> {
        let mut config = settings.kafka.consumer(GROUP);
        config.set("enable.partition.eof", "true");
        let consumer: StreamConsumer<SelfAssigned> = config
            .create_with_context(SelfAssigned)
            .context("cannot make a consumer")?;
        let start = if self.from_end {
            KafkaOffset::End
        } else {
            KafkaOffset::Beginning
        };
        let mut assignment = TopicPartitionList::new();
        for partition in partitions {
            assignment.add_partition_offset(LOG_TOPIC, *partition, start)?;
        }
        consumer
            .assign(&assignment)
            .context("cannot read the log")?;
        Ok(consumer)
    }
}

/// Whether librdkafka goes on by itself.
fn is_passing(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::AllBrokersDown
                | RDKafkaErrorCode::Resolve
                | RDKafkaErrorCode::OperationTimedOut
        )
    )
}

/// Prints records, and counts them.
struct Printer {
    output: BufWriter<Stdout>,
    only_events: bool,
    printed: u64,
    left_out: u64,
}

impl Printer {
    fn new(only_events: bool) -> Self {
        Self {
            output: BufWriter::new(std::io::stdout()),
            only_events,
            printed: 0,
            left_out: 0,
        }
    }

    fn print(&mut self, message: &BorrowedMessage<'_>) -> std::io::Result<()> {
        let decoded = decode(message.key(), message.payload());
        let line = match (decoded, self.only_events) {
            (Ok(event), true) => to_json(&event),
            (Err(_), true) => {
                self.left_out += 1;
                return Ok(());
            }
            (decoded, false) => {
                let (name, value) = match decoded {
                    Ok(event) => ("event", to_json(&event)),
                    Err(error) => ("undecodable", Value::from(describe(&error))),
                };
                json!({
                    "partition": message.partition(),
                    "offset": message.offset(),
                    "log_time": message.timestamp().to_millis().and_then(rfc3339),
                    name: value,
                })
            }
        };
        self.printed += 1;
        writeln!(self.output, "{line}")
    }
}
