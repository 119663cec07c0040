//! The appender against the broker that librdkafka mocks: what it promises of order, positions and errors.

#![allow(clippy::unwrap_used)]

use std::{
    num::NonZeroU16,
    time::{Duration, Instant},
};

use rdkafka::{mocking::MockCluster, producer::DefaultProducerContext};
use tidemark_event::{
    ConversationId, Event, EventId, MessageSent, Offset, Payload, UserId, kafka::KafkaSettings,
    partition_of,
};
use tidemark_gateway::{AppendError, AppendSettings, Appender, LogEndError};
use uuid::Uuid;

const TOPIC: &str = "tidemark.events";
const PARTITIONS: NonZeroU16 = NonZeroU16::new(4).unwrap();

fn cluster() -> MockCluster<'static, DefaultProducerContext> {
    let cluster = MockCluster::new(1).unwrap();
    cluster
        .create_topic(TOPIC, i32::from(PARTITIONS.get()), 1)
        .unwrap();
    cluster
}

fn appender(
    cluster: &MockCluster<'_, DefaultProducerContext>,
    partitions: NonZeroU16,
    settings: AppendSettings,
) -> Appender {
    let kafka = KafkaSettings::at(cluster.bootstrap_servers());
    Appender::new(&kafka, TOPIC, partitions, settings).unwrap()
}

fn says(conversation: &str, number: u128) -> Event {
    Event {
        id: EventId::new(Uuid::from_u128(number)),
        conversation: ConversationId::new(conversation).unwrap(),
        actor: UserId::new("bo").unwrap(),
        by_service: false,
        occurred_at: None,
        body_key: None,
        payload: Payload::MessageSent(MessageSent {
            body: format!("message {number}"),
            content_type: "text".to_owned(),
            mentions: vec![],
            mention_all: false,
            silent: false,
            reply_to: None,
        }),
    }
}

#[tokio::test]
async fn an_event_stands_where_its_conversation_does() {
    let cluster = cluster();
    let appender = appender(&cluster, PARTITIONS, AppendSettings::default());
    let event = says("g1", 1);
    let partition = partition_of(&event.conversation, PARTITIONS);
    for offset in 0..3 {
        let position = appender.append(&event).await.unwrap();
        assert_eq!(position.partition, partition);
        assert_eq!(position.offset, Offset::new(offset));
    }
    let end = appender.log_end().of(partition).await.unwrap();
    assert_eq!(end.get(), 3);
}

#[tokio::test]
async fn many_events_keep_the_order_of_their_conversations() {
    let cluster = cluster();
    let settings = AppendSettings {
        queue_events: 64,
        ..AppendSettings::default()
    };
    let appender = appender(&cluster, PARTITIONS, settings);
    let events: Vec<Event> = (0..1_000)
        .map(|number| says(&format!("g{}", number % 7), number))
        .collect();
    let answers = appender.append_all(&events).await;
    assert_eq!(answers.len(), events.len());
    let mut newest = std::collections::BTreeMap::new();
    for (event, answer) in events.iter().zip(answers) {
        let position = answer.unwrap();
        let before = newest.insert(event.conversation.as_str(), position);
        assert!(before.is_none_or(|before| before < position), "{event:?}");
    }
}

#[tokio::test]
async fn a_log_of_other_partitions_is_not_appended_to() {
    let cluster = cluster();
    let appender = appender(
        &cluster,
        NonZeroU16::new(5).unwrap(),
        AppendSettings::default(),
    );
    let error = appender.append(&says("g1", 1)).await.unwrap_err();
    assert!(error.is_surely_not_appended());
    let AppendError::Log { source } = error else {
        panic!("{error:?}");
    };
    assert!(
        matches!(source, LogEndError::OtherPartitions { found: 4, .. }),
        "{source:?}"
    );
}

#[tokio::test]
async fn a_broker_that_is_gone_leaves_it_open_whether_an_event_is_there() {
    let cluster = cluster();
    let settings = AppendSettings {
        delivery_timeout: Duration::from_millis(500),
        ..AppendSettings::default()
    };
    let appender = appender(&cluster, PARTITIONS, settings);
    appender.append(&says("g1", 1)).await.unwrap();
    cluster.broker_down(1).unwrap();
    let began = Instant::now();
    let error = appender.append(&says("g1", 2)).await.unwrap_err();
    assert!(matches!(error, AppendError::Unknown { .. }), "{error:?}");
    assert!(!error.is_surely_not_appended());
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_full_queue_refuses_in_time_and_nothing_is_appended() {
    let cluster = cluster();
    let settings = AppendSettings {
        queue_events: 1,
        queue_timeout: Duration::from_millis(200),
        delivery_timeout: Duration::from_secs(3),
        ..AppendSettings::default()
    };
    let appender = appender(&cluster, PARTITIONS, settings);
    appender.append(&says("g1", 1)).await.unwrap();
    cluster.broker_down(1).unwrap();
    let (first, second) = (says("g1", 2), says("g1", 3));
    let (first, second) = tokio::join!(appender.append(&first), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        appender.append(&second).await
    });
    assert!(!first.unwrap_err().is_surely_not_appended());
    let second = second.unwrap_err();
    assert!(
        matches!(second, AppendError::NotAppended { .. }),
        "{second:?}"
    );
    assert!(second.is_surely_not_appended());
}
