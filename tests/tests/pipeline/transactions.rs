//! A log with offsets that hold no records.

use crate::{PATIENCE, Size, Town, Value, View, kafka, until};

/// P6, P7.
#[tokio::test]
async fn transactions_and_their_markers_leave_no_lag() {
    let town = Town::in_turn().await;
    let scene = town.scene(Size::AsIs);
    let g1 = scene.name_in_partition("g", 2);
    scene.group(&g1, &["anna", "bo"]).await;
    let key = scene.on_wire(&g1).into_bytes();
    let values = |body: &str| -> Vec<Vec<u8>> {
        (1..=3)
            .map(|number| scene.message_bytes(&g1, "bo", &format!("{body} {number}")))
            .collect()
    };
    let (_, before) = kafka::bounds().await[&2];
    kafka::append_in_transaction(2, &key, &values("committed"), true).await;
    kafka::append_in_transaction(2, &key, &values("aborted"), false).await;
    let (_, end) = kafka::bounds().await[&2];
    assert_eq!(end, before + 8, "two times three messages, two markers");
    let at_end = async |view| {
        town.caught_up(view).await;
        until("the next offset is the log's end", PATIENCE, async || {
            let next = town.worker(view).metric("tidemark_next_offset").await;
            let next = next
                .into_iter()
                .find(|(labels, _)| labels.contains("partition=\"2\""))
                .map(|(_, next)| next);
            if next == Some(end as f64) {
                Ok(())
            } else {
                Err(next)
            }
        })
        .await;
    };
    for view in View::ALL {
        at_end(view).await;
    }
    let path = format!("/conversations/{g1}/messages?after=0");
    let page = scene.user("anna").read(&path).await.is(200);
    let bodies: Vec<&str> = page["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["body"].as_str().unwrap())
        .collect();
    assert_eq!(bodies, ["committed 1", "committed 2", "committed 3"]);

    // The checkpoint stands behind the markers: a restart finds nothing wrong, and nothing to do.
    for view in View::ALL {
        assert!(town.worker(view).terminate().await.success());
        town.start_worker(view).await;
        at_end(view).await;
    }
    let (code, output, _) = town.command(&["views", "--output", "json"], "").await;
    assert_eq!(code, 0);
    let views: Value = serde_json::from_str(&output).unwrap();
    for generation in views["generations"].as_array().unwrap() {
        assert_eq!(generation["lag"], 0, "{generation}");
    }
    scene.user("bo").says(&g1, "after").await;
    assert_eq!(scene.user("anna").seqs(&g1, "after=0").await, [1, 2, 3, 4]);
    town.audited().await;
}
