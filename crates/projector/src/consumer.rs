//! The Kafka side of a worker: a consumer of the view's group, whose rebalances become messages to the worker's loop.
//!
//! A callback collects partitions, sends one message and waits for a bounded answer: where to start the partitions it
//! was given, or that the ones taken away have come to rest. It runs on the thread that polls the main queue, which is
//! a thread of its own, so that waiting there holds up nothing else. Every partition's queue is split off *before* the
//! partition is assigned: afterwards records could already have gone to the main queue.

use std::{
    sync::{Arc, OnceLock, Weak, mpsc as sync_mpsc},
    time::Duration,
};

use rdkafka::{
    ClientContext, Message, Offset as KafkaOffset, Statistics, TopicPartitionList,
    consumer::{
        BaseConsumer, Consumer as _, ConsumerContext, RebalanceProtocol, StreamConsumer,
        stream_consumer,
    },
    error::{KafkaError, RDKafkaErrorCode},
    message::BorrowedMessage,
    types::RDKafkaRespErr,
};
use tidemark_event::{LOG_TOPIC, NextOffset, Offset, Partition};
use tokio::sync::mpsc;
use tracing::{error, info, warn};

use crate::{
    RawRecord,
    log_source::{
        BoundsError, GroupEvent, LogSource, OutOfRange, PartitionStatistics, Received, RecordQueue,
    },
    settings::{GroupProtocol, WorkerSettings},
    worker::KAFKA_TIMEOUT,
};

pub(crate) type LogConsumer = StreamConsumer<Context>;
type PartitionQueue = stream_consumer::StreamPartitionQueue<Context>;

pub(crate) struct Context {
    events: mpsc::UnboundedSender<GroupEvent<PartitionQueue>>,
    consumer: OnceLock<Weak<LogConsumer>>,
    assign_deadline: Duration,
    stop_deadline: Duration,
}

/// Makes a consumer and joins it to the view's group.
pub(crate) fn join(
    settings: &WorkerSettings,
    group: &str,
    events: mpsc::UnboundedSender<GroupEvent<PartitionQueue>>,
) -> Result<Arc<LogConsumer>, KafkaError> {
    let mut config = settings.kafka.consumer(group);
    // Tuning, unless the operator set it. The queue limits hold for each partition once queues are split.
    let mut tune = |name: &str, value: &str| {
        if !settings.kafka.properties.contains_key(name) {
            config.set(name, value);
        }
    };
    tune("queued.max.messages.kbytes", "2048");
    tune("queued.min.messages", "5000");
    tune("fetch.queue.backoff.ms", "20");
    tune("fetch.wait.max.ms", "100");
    tune("fetch.error.backoff.ms", "100");
    tune("auto.commit.interval.ms", "1000");
    tune("topic.metadata.refresh.interval.ms", "30000");
    if settings.group_protocol == GroupProtocol::Classic {
        // A killed worker is missed after this long. Shorter than usual, since replacing one too soon does no harm.
        // Under the other protocol the broker decides.
        tune("session.timeout.ms", "10000");
    }
    config.set("statistics.interval.ms", "1000");
    match settings.group_protocol {
        GroupProtocol::Classic => {
            config.set("group.protocol", "classic");
            config.set("partition.assignment.strategy", "cooperative-sticky");
        }
        GroupProtocol::Consumer => {
            config.set("group.protocol", "consumer");
        }
    }
    if let Some(id) = &settings.static_member_id {
        config.set("group.instance.id", id);
    }
    let context = Context {
        events,
        consumer: OnceLock::new(),
        assign_deadline: settings.assign_deadline,
        stop_deadline: settings.stop_deadline,
    };
    let consumer: Arc<LogConsumer> = Arc::new(config.create_with_context(context)?);
    // Set before the first poll, and only here: the callbacks run in polls.
    let _ = consumer.context().consumer.set(Arc::downgrade(&consumer));
    consumer.subscribe(&[LOG_TOPIC])?;
    Ok(consumer)
}

impl LogSource for Arc<LogConsumer> {
    type Queue = PartitionQueue;

    async fn bounds(&self, partition: Partition) -> Result<(Offset, NextOffset), BoundsError> {
        let asked = self.clone();
        let watermarks = tokio::task::spawn_blocking(move || {
            asked.fetch_watermarks(LOG_TOPIC, partition.get(), KAFKA_TIMEOUT)
        });
        match watermarks.await {
            Ok(Ok((start, end))) => Ok((Offset::new(start), NextOffset::new(end))),
            Ok(Err(error)) => Err(BoundsError(error.to_string())),
            Err(cut_off) => Err(BoundsError(cut_off.to_string())),
        }
    }

    fn store_offset(&self, partition: Partition, next: NextOffset) {
        let mut offsets = TopicPartitionList::new();
        let added = offsets.add_partition_offset(
            LOG_TOPIC,
            partition.get(),
            KafkaOffset::Offset(next.get()),
        );
        // It fails where the partition has just been revoked, and matters to nobody but lag tools.
        if let Err(error) = added.and_then(|()| self.store_offsets(&offsets)) {
            tracing::debug!(%partition, %error, "the group's offset was not stored");
        }
    }
}

impl RecordQueue for PartitionQueue {
    async fn recv(&mut self) -> Result<Received, OutOfRange> {
        received(PartitionQueue::recv(self).await)
    }
}

fn received(received: Result<BorrowedMessage<'_>, KafkaError>) -> Result<Received, OutOfRange> {
    match received {
        Ok(message) => Ok(Received::Record(RawRecord {
            offset: Offset::new(message.offset()),
            append_time: message.timestamp().to_millis().unwrap_or(0),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
        })),
        Err(KafkaError::PartitionEOF(_)) => Ok(Received::End),
        Err(KafkaError::MessageConsumption(
            RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange,
        )) => Err(OutOfRange),
        Err(error) => {
            warn!(%error, "Kafka could not give records just now");
            Ok(Received::Nothing)
        }
    }
}

impl Context {
    fn assign(&self, base: &BaseConsumer<Self>, list: &mut TopicPartitionList) {
        let partitions = partitions_of(list);
        info!(?partitions, "assigned");
        let (sender, receiver) = sync_mpsc::channel();
        let sent = self.events.send(GroupEvent::Assigned {
            partitions: partitions.clone(),
            starts: sender,
        });
        let margin = Duration::from_secs(1);
        let starts = match sent {
            Ok(()) => receiver
                .recv_timeout(self.assign_deadline + margin)
                .unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let mut queues = Vec::new();
        for partition in partitions {
            let start = starts
                .iter()
                .find(|(started, _)| *started == partition)
                .map(|(_, start)| *start);
            // A partition that cannot be started stays assigned, so that its lag shows and nobody else skips it; its
            // queue is split all the same and dropped, so that nothing of it is ever delivered.
            let offset = start.map_or(KafkaOffset::End, |start| KafkaOffset::Offset(start.get()));
            if let Err(error) = list.set_partition_offset(LOG_TOPIC, partition.get(), offset) {
                error!(%partition, %error, "the start of a partition could not be set");
                continue;
            }
            let consumer = self.consumer.get().and_then(Weak::upgrade);
            let queue = consumer
                .and_then(|consumer| consumer.split_partition_queue(LOG_TOPIC, partition.get()));
            if let (Some(queue), Some(_)) = (queue, start) {
                queues.push((partition, queue));
            }
        }
        let assigned = match base.rebalance_protocol() {
            RebalanceProtocol::Cooperative => base.incremental_assign(list),
            RebalanceProtocol::Eager | RebalanceProtocol::None => base.assign(list),
        };
        if let Err(error) = assigned {
            error!(%error, "partitions could not be assigned");
        }
        for (partition, queue) in queues {
            // The loop is gone only when the worker is stopping.
            let _ = self.events.send(GroupEvent::Started { partition, queue });
        }
    }

    fn revoke(&self, base: &BaseConsumer<Self>, list: &TopicPartitionList) {
        let partitions = partitions_of(list);
        info!(?partitions, lost = base.assignment_lost(), "revoked");
        let (sender, receiver) = sync_mpsc::channel();
        if self
            .events
            .send(GroupEvent::Revoked {
                partitions,
                at_rest: sender,
            })
            .is_ok()
        {
            let margin = Duration::from_secs(1);
            if let Err(sync_mpsc::RecvTimeoutError::Timeout) =
                receiver.recv_timeout(self.stop_deadline + margin)
            {
                warn!(
                    "revoked partitions did not come to rest in time and go on as zombies, which is safe"
                );
            }
        }
        let unassigned = match base.rebalance_protocol() {
            RebalanceProtocol::Cooperative => base.incremental_unassign(list),
            RebalanceProtocol::Eager | RebalanceProtocol::None => base.unassign(),
        };
        if let Err(error) = unassigned {
            warn!(%error, "partitions could not be unassigned");
        }
    }
}

impl ClientContext for Context {
    /// Errors arrive here as well as where they are received and acted on. The end of a partition is none.
    fn error(&self, error: KafkaError, reason: &str) {
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::PartitionEOF) {
            warn!(%error, reason, "the client met an error");
        }
    }

    fn stats(&self, statistics: Statistics) {
        let Some(topic) = statistics.topics.get(LOG_TOPIC) else {
            return;
        };
        let partitions = topic
            .partitions
            .values()
            .filter(|partition| partition.partition >= 0)
            .map(|known| {
                let end = if known.ls_offset >= 0 {
                    known.ls_offset
                } else {
                    known.hi_offset
                };
                // The end of a partition is signalled in its queue, behind all records: an empty queue has given them.
                let is_drained = known.fetchq_cnt == 0 && known.eof_offset >= 0;
                PartitionStatistics {
                    partition: Partition::new(known.partition),
                    log_end: (end >= 0).then(|| NextOffset::new(end)),
                    drained_to: is_drained.then(|| NextOffset::new(known.eof_offset)),
                }
            });
        let _ = self
            .events
            .send(GroupEvent::Statistics(partitions.collect()));
    }
}

impl ConsumerContext for Context {
    fn rebalance(
        &self,
        base: &BaseConsumer<Self>,
        err: RDKafkaRespErr,
        list: &mut TopicPartitionList,
    ) {
        match err {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS => self.assign(base, list),
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS => self.revoke(base, list),
            other => {
                error!(error = ?other, "the group could not be rebalanced");
                self.revoke(base, list);
            }
        }
    }
}

fn partitions_of(list: &TopicPartitionList) -> Vec<Partition> {
    list.elements_for_topic(LOG_TOPIC)
        .iter()
        .map(|element| Partition::new(element.partition()))
        .collect()
}
