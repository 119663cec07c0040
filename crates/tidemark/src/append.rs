//! Appending much: bounded in flight, in order, patient with brokers that come back.

use std::{num::NonZeroU16, time::Duration};

use anyhow::Context as _;
use tidemark_event::{Event, kafka::KafkaSettings};
use tidemark_gateway::{AppendError, AppendSettings, Appender};
use tidemark_store::Store;

use crate::lag::recorded_log;

/// Events that are handed over at once: all of them are under way together, and the next follow when all are
/// acknowledged. Some 50 requests to Kafka of the usual size.
pub(crate) const CHUNK: usize = 1_000;

/// How long an event may take to be acknowledged. Longer than a gateway allows, which has somebody waiting: a broker
/// that is restarted is back by then.
const PATIENCE: Duration = Duration::from_secs(120);

/// An appender to the log that the store is set up for.
///
/// # Errors
/// The store is set up for none, or Kafka's settings cannot be.
pub(crate) async fn open(kafka: &KafkaSettings, store: &Store) -> anyhow::Result<Appender> {
    let log = recorded_log(store).await?;
    let partitions = NonZeroU16::new(log.settings.partitions)
        .context("the keyspace was set up for a log of no partitions")?;
    let settings = AppendSettings {
        queue_timeout: PATIENCE,
        delivery_timeout: PATIENCE,
        ..AppendSettings::default()
    };
    Appender::new(kafka, &log.topic, partitions, settings).context("cannot make a producer")
}

/// Appends events in their order.
///
/// # Errors
/// Why the first was not appended. Those after it may be.
pub(crate) async fn append_in_order(
    appender: &Appender,
    events: &[Event],
) -> Result<(), AppendError> {
    for answer in appender.append_all(events).await {
        answer?;
    }
    Ok(())
}
