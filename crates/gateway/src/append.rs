//! Appends events to the log. Knows nothing of HTTP: commands that produce use it as well.
//!
//! An append that returns `Ok` is in the log, acknowledged by all in-sync replicas. One that fails says whether the
//! event is surely not there, or whether nobody knows: then the same event, with the same id, is to be appended again,
//! and the dedupe window makes one of the two.
//!
//! Order: events handed to one [`Appender::append_all`] are queued in their order, and the producer is idempotent, so
//! those of one conversation stand in the log in that order. Where one of them fails, later ones may still be there.
//!
//! A producer that has met a fatal error never sends again. It is replaced by a new one at the next append; what that
//! may double is told apart by event ids, as above.

use std::{
    num::NonZeroU16,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesOrdered};
use rdkafka::{
    ClientConfig,
    error::{KafkaError, RDKafkaErrorCode},
    producer::{FutureProducer, FutureRecord, Producer, future_producer::DeliveryFuture},
};
use tidemark_event::{
    EncodeError, Event, Offset, Partition, Position, encode, kafka::KafkaSettings, partition_of,
};

use crate::log_end::{LogEnd, LogEndError};

/// How events are appended.
#[derive(Debug, Clone)]
pub struct AppendSettings {
    /// The most events that wait to be sent or acknowledged, in all requests together. Default 20,000.
    pub queue_events: usize,
    /// The most bytes of them. Default 64 MiB.
    pub queue_bytes: usize,
    /// How long an event may wait for room in the queue. Default 2 s; then it is surely not appended.
    pub queue_timeout: Duration,
    /// How long an event in the queue may take to be acknowledged. Default 10 s: long enough for a broker's failover.
    pub delivery_timeout: Duration,
    /// How long an event waits for others to share its request. Default 2 ms.
    pub linger: Duration,
}

impl Default for AppendSettings {
    fn default() -> Self {
        Self {
            queue_events: 20_000,
            queue_bytes: 64 << 20,
            queue_timeout: Duration::from_secs(2),
            delivery_timeout: Duration::from_secs(10),
            linger: Duration::from_millis(2),
        }
    }
}

/// Why an event was not, or may not have been, appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The event can never be appended: it does not fit the schema or the log's largest record. Surely not appended.
    #[error("the event cannot be written to the log")]
    Unwritable {
        /// What is wrong with it.
        source: UnwritableError,
    },
    /// The log could not be looked at before the first append, or is not the one that was set up. Surely not appended.
    #[error("the log cannot be appended to")]
    Log {
        /// What is wrong with it.
        #[from]
        source: LogEndError,
    },
    /// The event never left the queue, or never entered it. Surely not appended.
    #[error("the event was not taken by {topic}")]
    NotAppended {
        /// The log's topic.
        topic: String,
        /// What the client says.
        source: KafkaError,
    },
    /// The event was sent and not acknowledged: it may be in the log or not.
    #[error("the event was sent to {topic} and not acknowledged")]
    Unknown {
        /// The log's topic.
        topic: String,
        /// What the client says.
        source: KafkaError,
    },
}

/// Why an event can never be written.
#[derive(Debug, thiserror::Error)]
pub enum UnwritableError {
    /// It does not fit its schema.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// It is larger than the log's largest record.
    #[error("it is larger than the largest record of the log")]
    TooLarge,
}

impl AppendError {
    /// Whether the event is surely not in the log. Else it may be: append it again with the same id.
    pub const fn is_surely_not_appended(&self) -> bool {
        match self {
            Self::Unwritable { .. } | Self::Log { .. } | Self::NotAppended { .. } => true,
            Self::Unknown { .. } => false,
        }
    }
}

/// Appends events to one log. Cheap to clone; clones share the queue.
#[derive(Clone)]
pub struct Appender {
    shared: Arc<Shared>,
}

struct Shared {
    topic: String,
    settings: AppendSettings,
    config: ClientConfig,
    partitions: NonZeroU16,
    producer: Mutex<FutureProducer>,
    end: LogEnd,
}

impl std::fmt::Debug for Appender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Appender")
            .field("topic", &self.shared.topic)
            .field("partitions", &self.shared.partitions)
            .finish_non_exhaustive()
    }
}

impl Appender {
    /// An appender to the log in `topic` of the cluster at `kafka`, which was set up with `partitions` partitions.
    ///
    /// Kafka is not asked before the first append; what it must have by then is the topic with that many partitions.
    ///
    /// # Errors
    /// The properties in `kafka` are not ones that librdkafka takes.
    pub fn new(
        kafka: &KafkaSettings,
        topic: &str,
        partitions: NonZeroU16,
        settings: AppendSettings,
    ) -> Result<Self, KafkaError> {
        let config = producer_config(kafka, &settings);
        let producer = Mutex::new(config.create()?);
        let end = LogEnd::new(kafka, topic, partitions)?;
        Ok(Self {
            shared: Arc::new(Shared {
                topic: topic.to_owned(),
                settings,
                config,
                partitions,
                producer,
                end,
            }),
        })
    }

    /// Where the log ends: shares the appender's way to Kafka.
    pub fn log_end(&self) -> &LogEnd {
        &self.shared.end
    }

    /// How many partitions the log was set up with.
    pub fn partitions(&self) -> NonZeroU16 {
        self.shared.partitions
    }

    /// Appends one event, and returns where it stands once all in-sync replicas have it.
    ///
    /// Takes at most the queue's and the delivery's timeout together. Not cancel safe: a dropped call may have
    /// appended the event, as with [`AppendError::Unknown`].
    ///
    /// # Errors
    /// [`AppendError`] says whether the event is surely not in the log.
    pub async fn append(&self, event: &Event) -> Result<Position, AppendError> {
        self.shared.end.check_partitions().await?;
        let sent = self.send(event).await?;
        self.delivered(sent).await
    }

    /// Appends events in their order, as far as they are of one conversation, and returns what became of each.
    ///
    /// They share requests to Kafka: many cost little more than one. Not cancel safe, as [`Appender::append`].
    pub async fn append_all<'e>(
        &self,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> Vec<Result<Position, AppendError>> {
        let mut answers = Vec::new();
        let mut waiting = FuturesOrdered::new();
        for event in events {
            let sent = match self.shared.end.check_partitions().await {
                Ok(()) => self.send(event).await,
                Err(error) => Err(error.into()),
            };
            waiting.push_back(async {
                match sent {
                    Ok(sent) => self.delivered(sent).await,
                    Err(error) => Err(error),
                }
            });
            if waiting.len() >= self.shared.settings.queue_events {
                answers.extend(waiting.next().await);
            }
        }
        while let Some(answer) = waiting.next().await {
            answers.push(answer);
        }
        answers
    }

    /// Waits until everything queued is acknowledged or given up, for `timeout` at most.
    ///
    /// # Errors
    /// Something is still under way: whether it is appended is not known.
    pub async fn flush(&self, timeout: Duration) -> Result<(), KafkaError> {
        let producer = self.producer();
        match tokio::task::spawn_blocking(move || producer.flush(timeout)).await {
            Ok(flushed) => flushed,
            Err(_) => Err(KafkaError::Canceled),
        }
    }

    /// Puts an event into the producer's queue, waiting for room where there is none.
    async fn send(&self, event: &Event) -> Result<Sent, AppendError> {
        /// How long a full queue is left alone before it is tried again.
        const ROOM: Duration = Duration::from_millis(5);

        let value = encode(event).map_err(|error| AppendError::Unwritable {
            source: error.into(),
        })?;
        let partition = partition_of(&event.conversation, self.shared.partitions);
        let give_up = tokio::time::Instant::now() + self.shared.settings.queue_timeout;
        loop {
            let record = FutureRecord::to(&self.shared.topic)
                .partition(partition.get())
                .key(event.conversation.as_str())
                .payload(&value);
            match self.producer().send_result(record) {
                Ok(delivery) => {
                    return Ok(Sent {
                        partition,
                        delivery,
                    });
                }
                Err((error, _)) => {
                    let is_full = error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull);
                    if !is_full || tokio::time::Instant::now() >= give_up {
                        return Err(self.failed(error));
                    }
                }
            }
            tokio::time::sleep(ROOM).await;
        }
    }

    async fn delivered(&self, sent: Sent) -> Result<Position, AppendError> {
        let delivery = match sent.delivery.await {
            Ok(Ok(delivery)) => delivery,
            Ok(Err((error, _))) => return Err(self.failed(error)),
            Err(_) => return Err(self.failed(KafkaError::Canceled)),
        };
        if delivery.offset >= 0 {
            return Ok(Position {
                partition: sent.partition,
                offset: Offset::new(delivery.offset),
            });
        }
        // The broker had it already from a try whose answer got lost, and does not tell where. Whoever waits for the
        // newest record there is now waits for this one too.
        let source = KafkaError::MessageProduction(RDKafkaErrorCode::NoOffset);
        match self.shared.end.newest(sent.partition).await {
            Ok(Some(offset)) => Ok(Position {
                partition: sent.partition,
                offset,
            }),
            Ok(None) | Err(_) => Err(self.failed(source)),
        }
    }

    fn failed(&self, source: KafkaError) -> AppendError {
        let topic = self.shared.topic.clone();
        match source.rdkafka_error_code() {
            Some(RDKafkaErrorCode::MessageSizeTooLarge) => AppendError::Unwritable {
                source: UnwritableError::TooLarge,
            },
            Some(code) if was_never_sent(code) => AppendError::NotAppended { topic, source },
            Some(_) | None => AppendError::Unknown { topic, source },
        }
    }

    /// The producer to use now: a new one where the last can never send again.
    fn producer(&self) -> FutureProducer {
        // Nothing is done while it is locked that could leave it half done.
        let mut producer = self
            .shared
            .producer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((code, reason)) = producer.client().fatal_error() {
            tracing::error!(%code, reason, "the producer met a fatal error and is replaced");
            match self.shared.config.create() {
                Ok(new) => *producer = new,
                Err(error) => tracing::error!(%error, "the producer could not be replaced"),
            }
        }
        producer.clone()
    }
}

/// An event in the producer's queue.
struct Sent {
    partition: Partition,
    delivery: DeliveryFuture,
}

/// Whether an event that failed with this code was surely never written: it did not leave the queue, or every broker
/// refuses it. What is not listed is not known: an earlier try of the same event may have been carried out.
fn was_never_sent(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::QueueFull
            | RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownPartition
            | RDKafkaErrorCode::PurgeQueue
            | RDKafkaErrorCode::InvalidArgument
            | RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::ClusterAuthorizationFailed
    )
}

/// The shared settings of producers, with this appender's bounds where `kafka` does not set others.
fn producer_config(kafka: &KafkaSettings, settings: &AppendSettings) -> ClientConfig {
    let bounds = [
        (
            "queue.buffering.max.messages",
            settings.queue_events.to_string(),
        ),
        (
            "queue.buffering.max.kbytes",
            (settings.queue_bytes >> 10).max(1).to_string(),
        ),
        (
            "message.timeout.ms",
            settings.delivery_timeout.as_millis().to_string(),
        ),
        ("linger.ms", settings.linger.as_millis().to_string()),
        ("compression.type", "lz4".to_owned()),
    ];
    let mut config = kafka.producer();
    for (name, value) in bounds {
        if !kafka.properties.contains_key(name) {
            config.set(name, value);
        }
    }
    config
}
