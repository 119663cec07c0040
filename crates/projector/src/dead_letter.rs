//! Records that a view could not take: sent to the view's dead-letter topic, with where they came from and why.
//!
//! At least once: a crash after the send and before the checkpoint sends again. Whoever counts them counts an origin
//! once. A dead letter is acknowledged before the head of its conversation is written, since a head that has passed a
//! refused record would hide it from the next worker.

use std::{future::Future, time::Duration};

use rdkafka::{
    error::KafkaError,
    message::{Header, OwnedHeaders},
    producer::{FutureProducer, FutureRecord, Producer},
    util::Timeout,
};
use tidemark_event::{LOG_TOPIC, Offset, Partition, dead_letter_topic, kafka::KafkaSettings};
use tidemark_fold::ViewName;

use crate::RawRecord;

/// How long one send may take before it counts as failed. It is then tried again: the checkpoint waits.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// A record that a view could not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The record as it stands in the log.
    pub record: RawRecord,
    /// Its partition of the log.
    pub partition: Partition,
    /// `undecodable`, or the reason of a refusal.
    pub reason: String,
    /// What was wrong, for people.
    pub detail: String,
}

/// Why a dead letter could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// No producer could be made: the settings are wrong.
    #[error("cannot make a producer for dead letters")]
    Producer(#[source] KafkaError),
    /// Kafka did not take it.
    #[error("cannot send the dead letter of offset {offset} in partition {partition} to {topic}")]
    Send {
        /// The dead-letter topic.
        topic: String,
        /// The partition it came from.
        partition: Partition,
        /// The offset it came from.
        offset: Offset,
        /// Kafka's reason.
        source: KafkaError,
    },
}

/// Where a worker sends dead letters: the seam where a simulation puts a list.
pub trait DeadLetters: Clone + Send + Sync + 'static {
    /// Sends all of them; returns once every one is acknowledged. One attempt.
    fn send(
        &self,
        letters: &[DeadLetter],
    ) -> impl Future<Output = Result<(), DeadLetterError>> + Send;
}

/// The dead-letter topic of a view.
#[derive(Clone)]
pub struct DeadLetterTopic {
    producer: FutureProducer,
    topic: String,
}

impl DeadLetterTopic {
    /// The topic of `view`.
    ///
    /// # Errors
    /// [`DeadLetterError::Producer`] where the Kafka settings are not valid.
    pub fn of(view: ViewName, kafka: &KafkaSettings) -> Result<Self, DeadLetterError> {
        let mut config = kafka.producer();
        config.set(
            "delivery.timeout.ms",
            DELIVERY_TIMEOUT.as_millis().to_string(),
        );
        let producer = config.create().map_err(DeadLetterError::Producer)?;
        Ok(Self {
            producer,
            topic: dead_letter_topic(view.as_str()),
        })
    }

    async fn send_one(&self, letter: &DeadLetter) -> Result<(), DeadLetterError> {
        let partition = letter.partition.to_string();
        let offset = letter.record.offset.to_string();
        let append_time = letter.record.append_time.to_string();
        let headers = [
            ("tidemark-origin-topic", LOG_TOPIC),
            ("tidemark-origin-partition", &partition),
            ("tidemark-origin-offset", &offset),
            ("tidemark-origin-append-time", &append_time),
            ("tidemark-reason", &letter.reason),
            ("tidemark-detail", &letter.detail),
        ]
        .into_iter()
        .fold(OwnedHeaders::new(), |headers, (key, value)| {
            headers.insert(Header {
                key,
                value: Some(value),
            })
        });
        let mut record: FutureRecord<'_, [u8], [u8]> =
            FutureRecord::to(&self.topic).headers(headers);
        record.key = letter.record.key.as_deref();
        record.payload = letter.record.value.as_deref();
        let sent = self
            .producer
            .send(record, Timeout::After(DELIVERY_TIMEOUT))
            .await;
        sent.map(|_| ())
            .map_err(|(source, _)| DeadLetterError::Send {
                topic: self.topic.clone(),
                partition: letter.partition,
                offset: letter.record.offset,
                source,
            })
    }
}

impl DeadLetters for DeadLetterTopic {
    async fn send(&self, letters: &[DeadLetter]) -> Result<(), DeadLetterError> {
        futures::future::try_join_all(letters.iter().map(|letter| self.send_one(letter))).await?;
        Ok(())
    }
}

impl std::fmt::Debug for DeadLetterTopic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeadLetterTopic")
            .field("topic", &self.topic)
            .field("in_flight", &self.producer.in_flight_count())
            .finish_non_exhaustive()
    }
}
