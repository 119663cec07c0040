//! A log that is not what a view has folded.

use rdkafka::admin::{AdminOptions, NewTopic, TopicReplication};
use tidemark_event::{LOG_TOPIC, Partition, kafka::KafkaSettings};

use crate::{PATIENCE, Settings, Size, Town, View, check_part, json, kafka, until};

/// A12.
#[tokio::test]
async fn a_log_cut_off_above_a_checkpoint_stops_the_view_with_both_offsets() {
    let town = Town::alone(Settings::default()).await;
    town.foresees("the partition stands still");
    let scene = town.scene(Size::AsIs);
    let g1 = scene.name_in_partition("g", 1);
    scene.group(&g1, &["anna", "bo"]).await;
    scene.user("bo").says_many(&g1, 9).await;
    scene.user("anna").session(&g1).await;
    town.caught_up(View::Inbox).await;
    assert!(town.worker(View::Inbox).terminate().await.success());

    scene.user("bo").says_many(&g1, 10).await;
    check_part(
        &scene.user("anna").session(&g1).await,
        &json!({"unread": 19}),
    );
    let (_, end) = kafka::bounds().await[&1];
    assert_eq!(end, 20);
    kafka::truncate(Partition::new(1), 15).await;

    let inbox = town.begin_worker(View::Inbox);
    inbox.not_ready(&["partition 1", "10", "15"]).await;
    // The views that had folded what is gone go on, also when they are started again.
    assert!(town.worker(View::Sessions).terminate().await.success());
    town.start_worker(View::Sessions).await;
    scene.user("bo").says(&g1, "and on").await;
    check_part(
        &scene.user("anna").session(&g1).await,
        &json!({"unread": 20, "last_seq": 20}),
    );
    assert_eq!(scene.user("anna").seqs(&g1, "after=0&limit=1").await, [1]);
    inbox.not_ready(&["partition 1", "10", "15"]).await;
}

/// P4.
#[tokio::test]
async fn a_topic_made_anew_under_a_checkpoint_stops_the_view() {
    let town = Town::alone(Settings::default()).await;
    town.foresees("the partition stands still");
    let scene = town.scene(Size::AsIs);
    let (longer, shorter) = (
        scene.name_in_partition("long", 1),
        scene.name_in_partition("short", 2),
    );
    for name in [&longer, &shorter] {
        scene.group(name, &["anna", "bo"]).await;
        scene.user("bo").says_many(name, 5).await;
    }
    scene.user("anna").sessions().await;
    town.caught_up(View::Sessions).await;
    for view in View::ALL {
        assert!(town.worker(view).terminate().await.success());
    }
    for gateway in town.gateways() {
        assert!(gateway.terminate().await.success());
    }
    anew().await;
    for number in 0..8 {
        let key = scene.on_wire(&longer).into_bytes();
        let value = scene.message_bytes(&longer, "bo", &format!("other {number}"));
        kafka::append(1, Some(&key), Some(&value)).await;
    }
    let key = scene.on_wire(&shorter).into_bytes();
    kafka::append(
        2,
        Some(&key),
        Some(&scene.message_bytes(&shorter, "bo", "other")),
    )
    .await;

    // Either it is told by the topic's own id before anything is read, or each partition by what stands in it.
    let worker = town.begin_worker(View::Sessions);
    until("a topic made anew noticed", PATIENCE, async || {
        if worker.ended().is_some_and(|status| !status.success()) {
            return Ok(());
        }
        match worker.page("/readyz").await {
            Ok((503, text)) if text.contains("created anew") => {}
            other => return Err(format!("{other:?}")),
        }
        let stopped = worker.metric("tidemark_partition_stopped").await;
        let labels = stopped
            .iter()
            .filter(|(_, value)| **value == 1.0)
            .map(|(labels, _)| labels);
        let stopped: Vec<&str> = labels
            .filter_map(|labels| labels.split("partition=").nth(1))
            .collect();
        if stopped == ["\"1\"", "\"2\""] {
            Ok(())
        } else {
            Err(format!("{stopped:?}"))
        }
    })
    .await;
}

/// Deletes the log and makes it again, as somebody may who thinks that empties it.
async fn anew() {
    let settings = KafkaSettings::at(&tidemark_e2e::servers::servers().kafka);
    let admin: rdkafka::admin::AdminClient<_> = settings.client().create().unwrap();
    admin
        .delete_topics(&[LOG_TOPIC], &AdminOptions::new())
        .await
        .unwrap();
    until("the topic made anew", PATIENCE, async || {
        let topic = NewTopic::new(LOG_TOPIC, 4, TopicReplication::Fixed(1))
            .set("message.timestamp.type", "LogAppendTime");
        let made = admin
            .create_topics([&topic], &AdminOptions::new())
            .await
            .unwrap();
        made.into_iter().collect::<Result<Vec<_>, _>>()
    })
    .await;
}
