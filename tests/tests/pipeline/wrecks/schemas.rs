//! Records of a schema that this release does not know: a later release may, so nothing is skipped.

use std::{collections::BTreeMap, sync::Arc};

use crate::{PATIENCE, Process, Scene, Settings, Size, Town, View, json, kafka, until};

#[tokio::test]
async fn a_schema_of_a_later_release_stops_its_partition_and_no_other() {
    let town = Town::alone(Settings::default()).await;
    town.foresees("the partition stands still");
    let scene = town.scene(Size::AsIs);
    let names: BTreeMap<i32, String> = (0..4)
        .map(|partition| (partition, scene.name_in_partition("g", partition)))
        .collect();
    for name in names.values() {
        scene.group(name, &["anna", "bo"]).await;
        scene.user("bo").says(name, "before").await;
    }
    assert_eq!(scene.user("anna").total_unread().await, 4);

    let key = scene.on_wire(&names[&2]).into_bytes();
    let mut of_later_release = scene.message_bytes(&names[&2], "bo", "from the future");
    of_later_release[2..10].copy_from_slice(&0x0123_4567_89ab_cdef_u64.to_le_bytes());
    let (_, offset) = kafka::append(2, Some(&key), Some(&of_later_release)).await;
    let path = format!("/conversations/{}/messages", names[&2]);
    let behind = scene
        .user("bo")
        .post(&path, json!({"body": "behind it"}))
        .await
        .is(202);
    for partition in [0, 1, 3] {
        scene.user("bo").says(&names[&partition], "after").await;
    }

    let stopped = |worker: Arc<Process>| async move {
        worker
            .not_ready(&["partition 2", &offset.to_string(), "schema"])
            .await;
        let stopped = worker.metric("tidemark_partition_stopped").await;
        for (labels, value) in stopped {
            assert_eq!(value == 1.0, labels.contains("partition=\"2\""), "{labels}");
        }
    };
    for view in View::ALL {
        stopped(town.worker(view)).await;
    }
    // The others go on; in this one nothing is skipped.
    let anna = scene.user("anna");
    let position = behind["position"].as_str().unwrap();
    assert!(
        anna.get(&format!("/sessions?at={position}"))
            .await
            .is_stale()
    );
    for partition in [0, 1, 3] {
        assert_eq!(
            history(&scene, &names[&partition]).await,
            ["before", "after"]
        );
    }
    assert_eq!(history(&scene, &names[&2]).await, ["before"]);
    for view in View::ALL {
        assert!(
            kafka::dead_letters(view).await.is_empty(),
            "it is no dead letter in {}",
            view.name()
        );
    }

    // A restart changes nothing: it stops there again.
    assert!(town.worker(View::Inbox).terminate().await.success());
    stopped(town.begin_worker(View::Inbox)).await;

    // So does a record that names a schema of a registry: this release cannot ask one.
    let key = scene.on_wire(&names[&1]).into_bytes();
    kafka::append(1, Some(&key), Some(&[0, 0, 0, 0, 7, 1, 2, 3])).await;
    for view in View::ALL {
        until("both partitions stopped", PATIENCE, async || {
            let stopped = town.worker(view).metric("tidemark_partition_stopped").await;
            if stopped.values().sum::<f64>() == 2.0 {
                Ok(())
            } else {
                Err(stopped)
            }
        })
        .await;
        town.worker(view)
            .not_ready(&["partition 1", "registry"])
            .await;
    }
}

/// As of now: in a partition that stands still nothing newer is to be waited for.
async fn history(scene: &Scene<'_>, conversation: &str) -> Vec<String> {
    let path = format!("/conversations/{conversation}/messages?after=0");
    let page = scene.user("anna").get(&path).await.is(200);
    let messages = page["messages"].as_array().unwrap();
    let bodies = messages
        .iter()
        .map(|message| message["body"].as_str().unwrap().to_owned());
    bodies.collect()
}
