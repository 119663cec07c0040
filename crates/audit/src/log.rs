//! Reads the log from its first record, a partition at a time, by a consumer that belongs to no group.
//!
//! Offsets have holes, and the end may be one: a transaction's marker, or records that were aborted. So a partition is
//! read until a record at or beyond its end comes, or Kafka says that there is nothing more. Kafka says so of what the
//! partition's leader has; just after a change of leaders that may be less than the end that was asked for before, so
//! what falls short of the end is asked for once more. Where nothing comes for long, reading ends with an error.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rdkafka::{
    Message, Offset as KafkaOffset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
};
use tidemark_event::{
    LOG_TOPIC, NextOffset, Offset, Partition,
    kafka::{KafkaSettings, SelfAssigned},
};
use uuid::Uuid;

use crate::RawRecord;

/// How long one question to Kafka may take.
const QUESTION: Duration = Duration::from_secs(10);

/// How long one look for a record may take: how soon reading sees that nobody waits for it any more.
const LOOK: Duration = Duration::from_millis(200);

/// How long nothing may come before reading ends with an error.
const DEFAULT_STALL: Duration = Duration::from_secs(60);

/// Why the log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Kafka cannot be asked, or refuses.
    #[error("Kafka could not be asked for {what} of {LOG_TOPIC}")]
    Kafka {
        /// What was asked for.
        what: String,
        /// What the client says.
        source: KafkaError,
    },
    /// Not the log that was set up.
    #[error(
        "{LOG_TOPIC} has {found} partitions, but was set up with {wanted}: the number of a log's partitions never changes"
    )]
    OtherPartitions {
        /// How many there are.
        found: usize,
        /// How many were set up.
        wanted: u16,
    },
    /// The log has lost its first records, so it cannot be folded.
    #[error(
        "partition {partition} of {LOG_TOPIC} begins at offset {start}: what came before is lost, and no view can be derived from the rest"
    )]
    StartsLater {
        /// The partition.
        partition: Partition,
        /// Where it begins.
        start: NextOffset,
    },
    /// Nothing came for long.
    #[error("partition {partition} of {LOG_TOPIC} ends at {end}, but for {} s nothing came from offset {next} on", waited.as_secs())]
    Stalled {
        /// The partition.
        partition: Partition,
        /// What was to come next.
        next: NextOffset,
        /// Where the partition ends.
        end: NextOffset,
        /// How long nothing came.
        waited: Duration,
        /// What the client said last.
        source: Option<KafkaError>,
    },
}

/// Reads the log. Every partition is read by a consumer of its own.
#[derive(Debug, Clone)]
pub struct LogReader {
    kafka: KafkaSettings,
    /// The consumers' group: never joined, and nothing is committed to it.
    group: String,
    stall: Duration,
}

impl LogReader {
    /// Reads the log of the cluster at `kafka`. Asks nothing yet.
    pub fn new(kafka: KafkaSettings) -> Self {
        Self {
            kafka,
            group: format!("tidemark.audit.{}", Uuid::now_v7()),
            stall: DEFAULT_STALL,
        }
    }

    /// Gives up when nothing has come for this long. Default 60 s.
    #[must_use]
    pub fn with_stall_deadline(mut self, stall: Duration) -> Self {
        self.stall = stall;
        self
    }

    /// The ends of these partitions, each of which must begin at 0. Blocks.
    pub(crate) fn ends(
        &self,
        set_up: u16,
        partitions: &[Partition],
    ) -> Result<Vec<NextOffset>, LogError> {
        let consumer = self.consumer()?;
        let metadata = consumer
            .fetch_metadata(Some(LOG_TOPIC), QUESTION)
            .map_err(|source| failed("the partitions", source))?;
        let topics = metadata.topics().iter();
        let found = topics
            .filter(|topic| topic.name() == LOG_TOPIC)
            .map(|topic| topic.partitions().len())
            .sum();
        if found != usize::from(set_up) {
            return Err(LogError::OtherPartitions {
                found,
                wanted: set_up,
            });
        }
        let mut ends = Vec::new();
        for partition in partitions {
            let (start, end) = bounds(&consumer, *partition)?;
            if start > NextOffset::START {
                return Err(LogError::StartsLater {
                    partition: *partition,
                    start,
                });
            }
            ends.push(end);
        }
        Ok(ends)
    }

    /// Gives each record of a partition below `end` to `take`, in order, until that breaks off or `stop` is set. Blocks.
    pub(crate) fn read<E: From<LogError>>(
        &self,
        partition: Partition,
        end: NextOffset,
        stop: &AtomicBool,
        mut take: impl FnMut(&RawRecord<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        if end <= NextOffset::START {
            return Ok(());
        }
        let consumer = self.consumer()?;
        let mut reading = Reading {
            consumer: &consumer,
            partition,
            next: NextOffset::START,
            end,
            is_asked_again: false,
            moved: Instant::now(),
            last_error: None,
        };
        reading.begin()?;
        while !stop.load(Ordering::Relaxed) && reading.next < end {
            match consumer.poll(LOOK) {
                Some(Ok(message)) => {
                    let offset = Offset::new(message.offset());
                    if end <= NextOffset::new(message.offset()) {
                        break;
                    }
                    let record = RawRecord {
                        offset,
                        append_time: message.timestamp().to_millis().unwrap_or(0),
                        key: message.key(),
                        value: message.payload(),
                    };
                    if take(&record)?.is_break() {
                        break;
                    }
                    reading.next = NextOffset::after(offset);
                    reading.moved = Instant::now();
                }
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    if reading.is_at_end()? {
                        break;
                    }
                }
                Some(Err(error)) => {
                    reading.note(error)?;
                    reading.check_stall(self.stall)?;
                }
                None => reading.check_stall(self.stall)?,
            }
        }
        Ok(())
    }

    fn consumer(&self) -> Result<BaseConsumer<SelfAssigned>, LogError> {
        let mut config = self.kafka.consumer(&self.group);
        // Tuning, unless the operator set it: several partitions are read beside each other.
        let mut tune = |name: &str, value: &str| {
            if !self.kafka.properties.contains_key(name) {
                config.set(name, value);
            }
        };
        tune("queued.max.messages.kbytes", "8192");
        tune("fetch.queue.backoff.ms", "20");
        tune("fetch.wait.max.ms", "100");
        tune("fetch.error.backoff.ms", "100");
        config.set("enable.auto.commit", "false");
        config
            .create_with_context(SelfAssigned)
            .map_err(|source| failed("a consumer", source))
    }
}

/// A partition being read.
struct Reading<'c> {
    consumer: &'c BaseConsumer<SelfAssigned>,
    partition: Partition,
    next: NextOffset,
    end: NextOffset,
    /// Kafka was asked a second time for what falls short of the end.
    is_asked_again: bool,
    moved: Instant,
    last_error: Option<KafkaError>,
}

impl Reading<'_> {
    fn begin(&self) -> Result<(), LogError> {
        let mut list = TopicPartitionList::new();
        let next = KafkaOffset::Offset(self.next.get());
        list.add_partition_offset(LOG_TOPIC, self.partition.get(), next)
            .and_then(|()| self.consumer.assign(&list))
            .map_err(|source| failed(format!("partition {}", self.partition), source))
    }

    /// Whether Kafka's word that there is nothing more is to be believed: where it falls short of the end, only of a
    /// leader that has that end.
    fn is_at_end(&mut self) -> Result<bool, LogError> {
        if self.is_asked_again {
            return Ok(true);
        }
        let (_, end) = bounds(self.consumer, self.partition)?;
        if self.end <= end {
            self.is_asked_again = true;
            self.begin()?;
        }
        Ok(false)
    }

    /// Notes an error that may pass; gives back one that will not.
    fn note(&mut self, error: KafkaError) -> Result<(), LogError> {
        let is_final = match &error {
            KafkaError::MessageConsumptionFatal(_) => true,
            KafkaError::MessageConsumption(code) => matches!(
                code,
                RDKafkaErrorCode::AutoOffsetReset
                    | RDKafkaErrorCode::OffsetOutOfRange
                    | RDKafkaErrorCode::TopicAuthorizationFailed
                    | RDKafkaErrorCode::SaslAuthenticationFailed
                    | RDKafkaErrorCode::Authentication
            ),
            _ => false,
        };
        if is_final {
            let what = format!("partition {} from offset {} on", self.partition, self.next);
            return Err(failed(what, error));
        }
        self.last_error = Some(error);
        Ok(())
    }

    fn check_stall(&mut self, stall: Duration) -> Result<(), LogError> {
        let waited = self.moved.elapsed();
        if waited < stall {
            return Ok(());
        }
        Err(LogError::Stalled {
            partition: self.partition,
            next: self.next,
            end: self.end,
            waited,
            source: self.last_error.take(),
        })
    }
}

/// Where a partition begins and ends, for readers of what is committed.
fn bounds(
    consumer: &BaseConsumer<SelfAssigned>,
    partition: Partition,
) -> Result<(NextOffset, NextOffset), LogError> {
    let (start, end) = consumer
        .fetch_watermarks(LOG_TOPIC, partition.get(), QUESTION)
        .map_err(|source| failed(format!("the ends of partition {partition}"), source))?;
    Ok((NextOffset::new(start), NextOffset::new(end)))
}

fn failed(what: impl Into<String>, source: KafkaError) -> LogError {
    LogError::Kafka {
        what: what.into(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::{
        mocking::MockCluster,
        producer::{BaseProducer, BaseRecord, DefaultProducerContext, Producer},
    };

    use super::*;

    const PARTITION: Partition = Partition::new(0);

    /// A broker of librdkafka's own, with so many records in the log's one partition.
    fn broker(records: i64) -> (MockCluster<'static, DefaultProducerContext>, LogReader) {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic(LOG_TOPIC, 1, 1).unwrap();
        let kafka = KafkaSettings::at(cluster.bootstrap_servers());
        let producer: BaseProducer = kafka.producer().create().unwrap();
        for number in 0..records {
            let value = number.to_string();
            let record = BaseRecord::to(LOG_TOPIC).key("c").payload(&value);
            producer.send(record).unwrap();
        }
        producer.flush(QUESTION).unwrap();
        let reader = LogReader::new(kafka).with_stall_deadline(Duration::from_secs(2));
        (cluster, reader)
    }

    /// Reads up to `end`, or until `break_at` has been taken.
    fn read(reader: &LogReader, end: i64, break_at: i64) -> Result<Vec<i64>, LogError> {
        let mut taken = Vec::new();
        let stop = AtomicBool::new(false);
        reader.read(PARTITION, NextOffset::new(end), &stop, |record| {
            assert_eq!(record.value, Some(record.offset.to_string().as_bytes()));
            taken.push(record.offset.get());
            Ok::<_, LogError>(if record.offset.get() == break_at {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })?;
        Ok(taken)
    }

    #[test]
    fn a_partition_is_read_from_its_first_record_to_the_end_that_was_asked_for() {
        let (_cluster, reader) = broker(50);
        let ends = reader.ends(1, &[PARTITION]).unwrap();
        assert_eq!(ends, [NextOffset::new(50)]);
        assert_eq!(read(&reader, 50, -1).unwrap(), (0..50).collect::<Vec<_>>());
        // Records that have come since are left for the next audit.
        assert_eq!(read(&reader, 20, -1).unwrap(), (0..20).collect::<Vec<_>>());
        assert_eq!(read(&reader, 50, 7).unwrap(), (0..8).collect::<Vec<_>>());
        assert_eq!(read(&reader, 0, -1).unwrap(), [0; 0]);
    }

    #[test]
    fn an_end_that_never_comes_is_an_error_that_says_where() {
        let (_cluster, reader) = broker(5);
        let failed = read(&reader, 9, -1).unwrap_err();
        assert_eq!(
            failed.to_string(),
            "partition 0 of tidemark.events ends at 9, but for 2 s nothing came from offset 5 on"
        );
    }

    #[test]
    fn a_log_of_another_number_of_partitions_is_not_read() {
        let (_cluster, reader) = broker(1);
        let failed = reader.ends(12, &[PARTITION]);
        assert!(
            matches!(
                failed,
                Err(LogError::OtherPartitions {
                    found: 1,
                    wanted: 12
                })
            ),
            "{failed:?}"
        );
    }
}
