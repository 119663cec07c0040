//! A log on a real Kafka: made anew, filled by all the ways there are, and read back.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use rdkafka::{
    Message, Offset as KafkaOffset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    producer::{FutureProducer, FutureRecord, Producer},
};
use tidemark_event::{
    Event, Fingerprint, LOG_TOPIC, LogTime, LogTopic, NextOffset, Offset, Partition, decode,
    encode, kafka::KafkaSettings,
};
use tidemark_fold::Record;

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn kafka() -> KafkaSettings {
    let servers = std::env::var("TIDEMARK_KAFKA").expect("TIDEMARK_KAFKA names a broker");
    KafkaSettings::at(servers)
}

/// Makes the log's topic anew.
pub(crate) async fn make_anew(partitions: u16) {
    let admin: AdminClient<DefaultClientContext> = kafka().client().create().unwrap();
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    admin.delete_topics(&[LOG_TOPIC], &options).await.unwrap();
    let settings = LogTopic::default().settings();
    let deadline = SystemTime::now() + PATIENCE;
    loop {
        let replicas = TopicReplication::Fixed(1);
        let mut topic = NewTopic::new(LOG_TOPIC, i32::from(partitions), replicas);
        for (name, value) in &settings {
            if *name != "min.insync.replicas" {
                topic = topic.set(name, value);
            }
        }
        let made = admin.create_topics([&topic], &options).await.unwrap();
        match &made[0] {
            Ok(_) => return,
            Err((_, code)) => {
                assert!(SystemTime::now() < deadline, "{code}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// Appends events in their order.
pub(crate) async fn append(events: &[Event]) {
    let producer: FutureProducer = kafka().producer().create().unwrap();
    for event in events {
        send(&producer, event, &encode(event).unwrap()).await;
    }
}

/// Appends a value that may be no event, under the key of one.
pub(crate) async fn append_value(like: &Event, value: &[u8]) {
    let producer: FutureProducer = kafka().producer().create().unwrap();
    send(&producer, like, value).await;
}

/// Appends events in a transaction, which ends with a marker that takes an offset, and is committed or not.
pub(crate) async fn append_in_transaction(events: &[Event], is_committed: bool) {
    let mut config = kafka().producer();
    config.set(
        "transactional.id",
        format!("audit-{}", uuid::Uuid::now_v7()),
    );
    let producer: FutureProducer = config.create().unwrap();
    producer.init_transactions(PATIENCE).unwrap();
    producer.begin_transaction().unwrap();
    for event in events {
        send(&producer, event, &encode(event).unwrap()).await;
    }
    if is_committed {
        producer.commit_transaction(PATIENCE).unwrap();
    } else {
        producer.abort_transaction(PATIENCE).unwrap();
    }
}

async fn send(producer: &FutureProducer, event: &Event, value: &[u8]) {
    let key = event.conversation.as_str();
    let record = FutureRecord::to(LOG_TOPIC).key(key).payload(value);
    producer.send(record, PATIENCE).await.unwrap();
}

/// A record of the log that may be none of an event.
#[derive(Debug, Clone)]
pub(crate) struct Read {
    pub(crate) offset: Offset,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) log_time: LogTime,
    pub(crate) record: Option<Record>,
}

/// Reads a partition as a worker does, up to where it ends now. Blocks.
pub(crate) fn read(partition: Partition, from: NextOffset, mut log_time: LogTime) -> Vec<Read> {
    let consumer: BaseConsumer = kafka().consumer("audit-test").create().unwrap();
    let mut list = TopicPartitionList::new();
    let start = KafkaOffset::Offset(from.get());
    list.add_partition_offset(LOG_TOPIC, partition.get(), start)
        .unwrap();
    consumer.assign(&list).unwrap();
    let mut records = Vec::new();
    loop {
        match consumer.poll(PATIENCE).expect("a record, or the end") {
            Ok(message) => {
                let append_time = message.timestamp().to_millis().unwrap();
                let fingerprint = Fingerprint::of(message.key(), message.payload(), append_time);
                log_time = log_time.advance(append_time);
                let offset = Offset::new(message.offset());
                let event = decode(message.key(), message.payload()).ok();
                records.push(Read {
                    offset,
                    fingerprint,
                    log_time,
                    record: event.map(|event| Record {
                        offset,
                        log_time,
                        fingerprint,
                        event,
                    }),
                });
            }
            Err(KafkaError::PartitionEOF(_)) => return records,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The events of a random log, in conversations of a name's own.
pub(crate) fn events(name: &str, seed: u64, len: usize) -> Vec<Event> {
    let mut ids = BTreeMap::new();
    let log = tidemark_model::generate::log_from_seed(seed, len);
    let rename = |mut event: Event| {
        let id = &event.conversation;
        let renamed = ids
            .entry(id.clone())
            .or_insert_with(|| tidemark_model::story::conversation(format!("{name}-{id}")));
        event.conversation = renamed.clone();
        event
    };
    log.into_iter()
        .map(|logged| logged.event)
        .map(rename)
        .collect()
}
