//! Polls the consumer's main queue, on a thread of its own.

use std::sync::Arc;

use rdkafka::{
    consumer::Consumer as _,
    error::{KafkaError, RDKafkaErrorCode},
};
use tidemark_event::LOG_TOPIC;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::consumer::LogConsumer;

/// What the polling thread found that ends the worker.
pub(crate) enum PollEnd {
    Stopped,
    Fatal(String),
}

/// Polls the main queue. Records never arrive here; whatever else does is served by the consumer's context.
pub(crate) async fn poll(
    consumer: Arc<LogConsumer>,
    stop: CancellationToken,
    rejoin: Arc<Notify>,
) -> PollEnd {
    loop {
        let received = tokio::select! {
            biased;
            () = stop.cancelled() => return PollEnd::Stopped,
            () = rejoin.notified() => {
                info!("leaving the group to join it anew");
                consumer.unsubscribe();
                if let Err(error) = consumer.subscribe(&[LOG_TOPIC]) {
                    return PollEnd::Fatal(error.to_string());
                }
                continue;
            }
            received = consumer.recv() => received,
        };
        match received {
            Ok(_) => error!("a record arrived on the main queue: its partition was not split off"),
            Err(KafkaError::PartitionEOF(_)) => {}
            Err(error) => {
                if let Some((code, reason)) = consumer.client().fatal_error() {
                    return PollEnd::Fatal(format!("{code}: {reason}"));
                }
                if is_for_good(&error) {
                    return PollEnd::Fatal(error.to_string());
                }
                warn!(%error, "the consumer met an error and goes on");
            }
        }
    }
}

/// Errors that no waiting mends: another worker has this one's static member id, or Kafka refuses the client.
fn is_for_good(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::FencedInstanceId
                | RDKafkaErrorCode::UnreleasedInstanceId
                | RDKafkaErrorCode::GroupAuthorizationFailed
                | RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::Fatal
        )
    )
}
