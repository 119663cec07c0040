//! The log and the dead letters, read and written as anybody could: with a Kafka client and the log's language.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::future::join_all;
use rdkafka::{
    Message, Offset as KafkaOffset, TopicPartitionList,
    admin::{AdminClient, AdminOptions},
    client::DefaultClientContext,
    consumer::{BaseConsumer, Consumer},
    error::KafkaError,
    message::Headers,
    producer::{FutureProducer, FutureRecord, Producer},
};
use tidemark_event::{
    LOG_TOPIC, LogTime, Offset, Partition, dead_letter_topic, decode, kafka::KafkaSettings,
};
use tidemark_model::Logged;

use crate::{View, servers::servers, wait::until};

/// How long one question to Kafka may take.
const QUESTION: Duration = Duration::from_secs(10);

/// A record as it stands in a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its partition.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// When it was appended, in milliseconds since 1970 UTC.
    pub append_time: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
    /// Its headers.
    pub headers: BTreeMap<String, String>,
}

/// A place in the log: partition and offset.
pub type Place = (i32, i64);

fn settings() -> KafkaSettings {
    KafkaSettings::at(&servers().kafka)
}

/// Every record of a topic that readers can see, by partition and offset.
pub async fn read(topic: &str) -> Vec<Record> {
    let topic = topic.to_owned();
    let read = tokio::task::spawn_blocking(move || read_blocking(&topic));
    read.await.expect("reading does not panic")
}

fn read_blocking(topic: &str) -> Vec<Record> {
    let consumer: BaseConsumer = settings().consumer("e2e-reader").create().unwrap();
    let partitions = partitions(&consumer, topic);
    let mut list = TopicPartitionList::new();
    for partition in &partitions {
        list.add_partition_offset(topic, *partition, KafkaOffset::Beginning)
            .unwrap();
    }
    consumer.assign(&list).unwrap();
    let mut at_end = BTreeSet::new();
    let mut records = Vec::new();
    while at_end.len() < partitions.len() {
        match consumer.poll(QUESTION).expect("Kafka answers") {
            Ok(record) => records.push(Record {
                partition: record.partition(),
                offset: record.offset(),
                append_time: record.timestamp().to_millis().unwrap_or_default(),
                key: record.key().map(<[u8]>::to_vec),
                value: record.payload().map(<[u8]>::to_vec),
                headers: headers(&record),
            }),
            Err(KafkaError::PartitionEOF(partition)) => {
                at_end.insert(partition);
            }
            Err(error) => panic!("{topic} cannot be read: {error}"),
        }
    }
    records.sort_by_key(|record| (record.partition, record.offset));
    records
}

fn headers(record: &impl Message) -> BTreeMap<String, String> {
    let Some(headers) = record.headers() else {
        return BTreeMap::new();
    };
    let text =
        |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    headers
        .iter()
        .map(|header| (header.key.to_owned(), text(header.value)))
        .collect()
}

fn partitions(consumer: &BaseConsumer, topic: &str) -> Vec<i32> {
    let metadata = consumer
        .fetch_metadata(Some(topic), QUESTION)
        .expect("Kafka answers");
    let topics = metadata
        .topics()
        .iter()
        .filter(|found| found.name() == topic);
    topics
        .flat_map(|topic| topic.partitions())
        .map(|partition| partition.id())
        .collect()
}

/// The log's events by partition, as the naive model takes them. What is no event is left out.
pub async fn events() -> BTreeMap<i32, Vec<Logged>> {
    let mut events = BTreeMap::<i32, Vec<Logged>>::new();
    let mut times = BTreeMap::<i32, LogTime>::new();
    for record in read(LOG_TOPIC).await {
        let time = times.entry(record.partition).or_insert(LogTime::START);
        *time = time.advance(record.append_time);
        if let Ok(event) = decode(record.key.as_deref(), record.value.as_deref()) {
            events.entry(record.partition).or_default().push(Logged {
                offset: Offset::new(record.offset),
                log_time: *time,
                event,
            });
        }
    }
    events
}

/// The dead letters of a view, by where they came from. However often an origin was sent, it stands here once; that
/// all of its letters are equal is checked.
pub async fn dead_letters(view: View) -> BTreeMap<Place, Record> {
    let mut letters = BTreeMap::<Place, Record>::new();
    for letter in read(&dead_letter_topic(view.name())).await {
        let header = |name: &str| letter.headers.get(name).map_or("", String::as_str);
        assert_eq!(header("tidemark-origin-topic"), LOG_TOPIC);
        let place = (
            header("tidemark-origin-partition")
                .parse()
                .expect("a letter tells its partition"),
            header("tidemark-origin-offset")
                .parse()
                .expect("a letter tells its offset"),
        );
        if let Some(earlier) = letters.get(&place) {
            assert_eq!(
                earlier.headers, letter.headers,
                "two letters of one origin differ"
            );
            assert_eq!(
                earlier.value, letter.value,
                "two letters of one origin differ"
            );
        }
        letters.insert(place, letter);
    }
    letters
}

/// Where the log begins and ends, by partition. The end counts transaction markers.
pub async fn bounds() -> BTreeMap<i32, (i64, i64)> {
    let asked = tokio::task::spawn_blocking(|| {
        let consumer: BaseConsumer = settings().consumer("e2e-reader").create().unwrap();
        let partitions = partitions(&consumer, LOG_TOPIC);
        let ask = |partition| {
            let bounds = consumer.fetch_watermarks(LOG_TOPIC, partition, QUESTION);
            (partition, bounds.expect("Kafka answers"))
        };
        partitions.into_iter().map(ask).collect()
    });
    asked.await.expect("asking does not panic")
}

/// Appends a record to a partition of the log, whatever it is.
pub async fn append(partition: i32, key: Option<&[u8]>, value: Option<&[u8]>) -> Place {
    let producer: FutureProducer = settings().producer().create().unwrap();
    send(&producer, partition, key, value).await
}

/// Appends records to a partition in one transaction, which is committed or aborted.
pub async fn append_in_transaction(partition: i32, key: &[u8], values: &[Vec<u8>], commits: bool) {
    let mut config = settings().producer();
    config.set("transactional.id", format!("e2e-{}", uuid::Uuid::new_v4()));
    let producer: FutureProducer = config.create().unwrap();
    let run = |act: fn(&FutureProducer) -> Result<(), KafkaError>| {
        let producer = producer.clone();
        let done = tokio::task::spawn_blocking(move || act(&producer));
        async { done.await.unwrap().expect("a transaction goes on") }
    };
    run(|producer| producer.init_transactions(QUESTION)).await;
    producer.begin_transaction().unwrap();
    let key = Some(key);
    join_all(
        values
            .iter()
            .map(|value| send(&producer, partition, key, Some(value))),
    )
    .await;
    if commits {
        run(|producer| producer.commit_transaction(QUESTION)).await;
    } else {
        run(|producer| producer.abort_transaction(QUESTION)).await;
    }
}

async fn send(
    producer: &FutureProducer,
    partition: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Place {
    let mut record: FutureRecord<'_, [u8], [u8]> = FutureRecord::to(LOG_TOPIC).partition(partition);
    record.key = key;
    record.payload = value;
    let delivery = producer.send(record, QUESTION).await;
    let delivery = delivery
        .map_err(|(error, _)| error)
        .expect("the log takes a record");
    (delivery.partition, delivery.offset)
}

/// Deletes the records of a partition below `offset`, as a retention does that should not have been set.
pub async fn truncate(partition: Partition, offset: i64) {
    let mut list = TopicPartitionList::new();
    let offset = KafkaOffset::Offset(offset);
    list.add_partition_offset(LOG_TOPIC, partition.get(), offset)
        .unwrap();
    admin()
        .delete_records(&list, &AdminOptions::new())
        .await
        .expect("records can be deleted");
}

/// The consumer groups whose names hold `part`.
pub async fn groups(part: &str) -> Vec<String> {
    let asked = tokio::task::spawn_blocking(|| {
        let consumer: BaseConsumer = settings().consumer("e2e-reader").create().unwrap();
        let groups = consumer
            .fetch_group_list(None, QUESTION)
            .expect("Kafka answers");
        let names = groups.groups().iter().map(|group| group.name().to_owned());
        names.collect::<Vec<_>>()
    });
    let mut names = asked.await.expect("asking does not panic");
    names.retain(|name| name.contains(part));
    names
}

/// Forgets consumer groups and the offsets they committed, as a broker does when nobody ran for long.
pub async fn forget_groups(names: &[String]) {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // A group can be forgotten once its last member has left.
    until("the groups forgotten", crate::PATIENCE, async || {
        let forgotten = admin().delete_groups(&names, &AdminOptions::new()).await;
        let failed = forgotten
            .expect("Kafka answers")
            .into_iter()
            .filter_map(Result::err);
        let failed: Vec<_> = failed.collect();
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed)
        }
    })
    .await;
}

/// Deletes the log and the dead letters, and waits until they are gone.
pub(crate) async fn delete_log() {
    let topics: Vec<String> = View::ALL
        .iter()
        .map(|view| dead_letter_topic(view.name()))
        .chain([LOG_TOPIC.to_owned()])
        .collect();
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    until("the old log deleted", crate::PATIENCE, async || {
        let there = existing(&topics).await;
        if there.is_empty() {
            return Ok(());
        }
        // Whether each was there to be deleted is seen by looking again.
        let deleted = admin().delete_topics(&names, &AdminOptions::new()).await;
        deleted.map_err(|error| error.to_string())?;
        Err(there.join(", "))
    })
    .await;
}

async fn existing(topics: &[String]) -> Vec<String> {
    let asked = tokio::task::spawn_blocking(|| {
        let consumer: BaseConsumer = settings().consumer("e2e-reader").create().unwrap();
        let metadata = consumer
            .fetch_metadata(None, QUESTION)
            .expect("Kafka answers");
        let names = metadata
            .topics()
            .iter()
            .map(|topic| topic.name().to_owned());
        names.collect::<Vec<_>>()
    });
    let mut names = asked.await.expect("asking does not panic");
    names.retain(|name| topics.contains(name));
    names
}

fn admin() -> AdminClient<DefaultClientContext> {
    settings().client().create().unwrap()
}
