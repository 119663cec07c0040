//! Where the log ends, as of now: what a refusal waits for, and whether the log is the one that was set up.
//!
//! An answer counts only for those who asked before the question was put: an event acknowledged before somebody asked
//! must be below the end they are told. So callers of one partition queue up, and the first in the queue asks for all
//! who stand behind it by then: at most one question a partition is under way, however many ask.
//!
//! The end is the last stable offset, as the views' workers see it: an open transaction holds both back.

use std::{
    num::NonZeroU16,
    sync::{Arc, OnceLock},
    time::Duration,
};

use rdkafka::{
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
};
use tidemark_event::{NextOffset, Offset, Partition, kafka::KafkaSettings};
use tokio::{sync::Mutex, time::Instant};

/// How long one question to Kafka may take.
const QUESTION: Duration = Duration::from_secs(2);

/// Why the log's end is not known.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogEndError {
    /// Kafka did not answer in time, or with an error.
    #[error("{topic}: Kafka could not be asked")]
    Kafka {
        /// The log's topic.
        topic: String,
        /// What the client says.
        source: KafkaError,
    },
    /// Appending would put a conversation's events into another partition than its earlier ones.
    #[error(
        "{topic} has {found} partitions, but was set up with {wanted}: the number of a log's partitions never changes"
    )]
    OtherPartitions {
        /// The log's topic.
        topic: String,
        /// How many there are.
        found: usize,
        /// How many were set up.
        wanted: NonZeroU16,
    },
}

/// Asks Kafka for the ends of one log's partitions.
pub struct LogEnd {
    consumer: Arc<BaseConsumer>,
    topic: String,
    partitions: NonZeroU16,
    /// Set once the topic was seen with as many partitions as it was set up with.
    are_partitions_right: OnceLock<()>,
    known: Vec<Mutex<Option<Known>>>,
}

/// The end of a partition, at or after `asked`.
#[derive(Debug, Clone, Copy)]
struct Known {
    asked: Instant,
    end: NextOffset,
}

impl std::fmt::Debug for LogEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogEnd")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

impl LogEnd {
    /// Looks at `topic` of the cluster at `kafka`, which was set up with `partitions` partitions. Asks nothing yet.
    pub(crate) fn new(
        kafka: &KafkaSettings,
        topic: &str,
        partitions: NonZeroU16,
    ) -> Result<Self, KafkaError> {
        /// Never joined: a consumer must name one.
        const GROUP: &str = "tidemark-gateway";
        Ok(Self {
            consumer: Arc::new(kafka.consumer(GROUP).create()?),
            topic: topic.to_owned(),
            partitions,
            are_partitions_right: OnceLock::new(),
            known: (0..partitions.get()).map(|_| Mutex::default()).collect(),
        })
    }

    /// The offset that the next record of a partition will have, or a later one: at least as of this call.
    ///
    /// # Errors
    /// [`LogEndError`]; also for a partition that the log does not have.
    pub async fn of(&self, partition: Partition) -> Result<NextOffset, LogEndError> {
        let called = Instant::now();
        let known = usize::try_from(partition.get())
            .ok()
            .and_then(|index| self.known.get(index));
        let Some(known) = known else {
            return Err(self.failed(KafkaError::MetadataFetch(
                rdkafka::types::RDKafkaErrorCode::UnknownPartition,
            )));
        };
        let mut known = known.lock().await;
        if let Some(known) = known.filter(|known| called <= known.asked) {
            return Ok(known.end);
        }
        let asked = Instant::now();
        let topic = self.topic.clone();
        let (_, end) = self
            .ask(move |consumer| consumer.fetch_watermarks(&topic, partition.get(), QUESTION))
            .await?;
        let end = NextOffset::new(end);
        *known = Some(Known { asked, end });
        Ok(end)
    }

    /// The newest record of a partition; none where it has none.
    ///
    /// # Errors
    /// As [`LogEnd::of`].
    pub(crate) async fn newest(&self, partition: Partition) -> Result<Option<Offset>, LogEndError> {
        let end = self.of(partition).await?;
        Ok((end > NextOffset::START).then(|| Offset::new(end.get() - 1)))
    }

    /// Checks that the topic has the partitions that it was set up with: once, as the number never changes.
    ///
    /// # Errors
    /// [`LogEndError::OtherPartitions`], or Kafka could not be asked.
    pub async fn check_partitions(&self) -> Result<(), LogEndError> {
        if self.are_partitions_right.get().is_some() {
            return Ok(());
        }
        self.look().await
    }

    /// Asks Kafka whether the topic is there, with the right partitions.
    ///
    /// # Errors
    /// As [`LogEnd::check_partitions`].
    pub async fn look(&self) -> Result<(), LogEndError> {
        let topic = self.topic.clone();
        let metadata = self
            .ask(move |consumer| consumer.fetch_metadata(Some(&topic), QUESTION))
            .await?;
        let topics = metadata.topics();
        let found = topics
            .iter()
            .find(|topic| topic.name() == self.topic)
            .map_or(0, |topic| topic.partitions().len());
        if found != usize::from(self.partitions.get()) {
            return Err(LogEndError::OtherPartitions {
                topic: self.topic.clone(),
                found,
                wanted: self.partitions,
            });
        }
        self.are_partitions_right.get_or_init(|| ());
        Ok(())
    }

    /// Puts a question, off the threads that serve requests: librdkafka blocks.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&BaseConsumer) -> Result<T, KafkaError> + Send + 'static,
    ) -> Result<T, LogEndError> {
        /// Events of the client that are let go with each question: errors, which the answer tells as well.
        const EVENTS: usize = 100;

        let consumer = Arc::clone(&self.consumer);
        let ask = move || {
            let mut events = (0..EVENTS).map_while(|_| consumer.poll(Duration::ZERO));
            // Nothing is subscribed to, so none of them is a record.
            while events.next().is_some() {}
            question(&consumer)
        };
        match tokio::task::spawn_blocking(ask).await {
            Ok(answer) => answer.map_err(|source| self.failed(source)),
            Err(_) => Err(self.failed(KafkaError::Canceled)),
        }
    }

    fn failed(&self, source: KafkaError) -> LogEndError {
        LogEndError::Kafka {
            topic: self.topic.clone(),
            source,
        }
    }
}
