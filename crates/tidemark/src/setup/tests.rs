//! What is asked for against what is there.

use super::*;

fn some(number: u16) -> Option<NonZeroU16> {
    NonZeroU16::new(number)
}

fn recorded(partitions: u16) -> RecordedLog {
    RecordedLog {
        topic: LOG_TOPIC.to_owned(),
        topic_id: None,
        settings: LogSettings {
            partitions,
            dedupe: DedupeWindow { millis: 5, ids: 6 },
        },
    }
}

#[track_caller]
fn partitions(asked: Option<u16>, found: Option<usize>, there: Option<u16>) -> Option<u16> {
    let wishes = Wishes {
        partitions: asked.and_then(NonZeroU16::new),
        ..Wishes::default()
    };
    let log = wishes.log(found, there.map(recorded).as_ref());
    log.ok().map(|log| log.partitions)
}

#[test]
fn a_log_that_is_there_keeps_its_partitions() {
    assert_eq!(partitions(None, None, None), Some(64));
    assert_eq!(partitions(Some(8), None, None), Some(8));
    assert_eq!(partitions(None, Some(12), None), Some(12));
    assert_eq!(partitions(None, None, Some(12)), Some(12));
    assert_eq!(partitions(Some(12), Some(12), Some(12)), Some(12));
}

#[test]
fn another_number_of_partitions_is_refused() {
    assert_eq!(partitions(Some(8), Some(12), None), None);
    assert_eq!(partitions(Some(8), None, Some(12)), None);
    assert_eq!(partitions(None, Some(8), Some(12)), None);
}

#[test]
fn the_recorded_window_is_asked_for_again_unless_another_is() {
    let log = Wishes::default().log(None, Some(&recorded(3))).unwrap();
    assert_eq!((log.dedupe.millis, log.dedupe.ids), (5, 6));
    let wishes = Wishes {
        dedupe_window: Some(Duration::from_secs(60)),
        ..Wishes::default()
    };
    let log = wishes.log(None, Some(&recorded(3))).unwrap();
    assert_eq!((log.dedupe.millis, log.dedupe.ids), (60_000, 6));
}

#[test]
fn a_single_broker_is_taken_as_it_is_and_more_must_be_three() {
    let numbers = |wishes: &Wishes, brokers| {
        let topic = wishes.topic(brokers, 4).unwrap();
        (
            topic.replication_factor.get(),
            topic.min_insync_replicas.get(),
            wishes.store_replication(brokers),
        )
    };
    assert_eq!(numbers(&Wishes::default(), 1), (1, 1, 1));
    assert_eq!(numbers(&Wishes::default(), 2), (3, 2, 3));
    assert_eq!(numbers(&Wishes::default(), 5), (3, 2, 3));
    let wishes = Wishes {
        replication_factor: some(5),
        cql_replication: some(2),
        ..Wishes::default()
    };
    assert_eq!(numbers(&wishes, 1), (5, 4, 2));
    let impossible = Wishes {
        replication_factor: some(2),
        min_insync_replicas: some(3),
        ..Wishes::default()
    };
    assert!(impossible.topic(3, 4).is_err());
}

#[test]
fn a_topic_that_is_no_log_is_told() {
    let topic = LogTopic::default();
    let mut there: BTreeMap<String, String> = topic
        .settings()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    there.insert("min.insync.replicas".to_owned(), "1".to_owned());
    assert_eq!(Wishes::default().topic_differences(&topic, &there), [""; 0]);

    there.insert("message.timestamp.type".to_owned(), "CreateTime".to_owned());
    there.remove("retention.ms");
    let expected = [
        "tidemark.events has message.timestamp.type=CreateTime, not LogAppendTime",
        "tidemark.events has retention.ms=unknown, not -1",
    ];
    assert_eq!(
        Wishes::default().topic_differences(&topic, &there),
        expected
    );
    let wishes = Wishes {
        min_insync_replicas: some(2),
        ..Wishes::default()
    };
    assert_eq!(wishes.topic_differences(&topic, &there).len(), 3);
}
