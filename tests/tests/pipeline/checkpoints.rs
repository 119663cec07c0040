//! A checkpoint never leads what is folded.

use std::time::{Duration, Instant};

use tidemark_e2e::servers::{Server, servers};

use crate::{Size, Town, Value, View, json};

/// While a batch waits for the store, more records and the log's end queue up behind it; when the store goes on, they
/// are all taken at once, and for a moment they are neither queued nor folded. A worker that asks just then whether its
/// queue is drained must not move its checkpoint over them. The moment is two milliseconds in a second, so this looks
/// for minutes: TIDEMARK_HUNT_SECONDS.
#[tokio::test]
#[ignore = "needs minutes to meet the moment it looks for"]
async fn no_checkpoint_moves_over_records_that_were_taken_and_not_folded() {
    let seconds = std::env::var("TIDEMARK_HUNT_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(240);
    let town = Town::in_turn().await;
    for line in [
        "the store",
        "checkpoints could not be read",
        "scylla",
        "the active generation",
    ] {
        town.foresees(line);
    }
    let scene = town.scene(Size::AsIs);
    let names: Vec<String> = (0..4)
        .map(|partition| scene.name_in_partition("g", partition))
        .collect();
    for name in &names {
        scene.group(name, &["anna", "bo"]).await;
    }
    let everywhere = async |count: usize| {
        let lines: Vec<Value> = names
            .iter()
            .flat_map(|name| {
                let line = json!({
                    "conversation_id": name, "actor": "bo", "type": "MessageSent", "payload": {"body": "hi"},
                });
                std::iter::repeat_n(line, count)
            })
            .collect();
        scene.service().appends(&lines).await;
    };
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        servers().freeze(Server::Cassandra);
        everywhere(1).await;
        // Long enough for the first to be taken, and then for the log's end to be told of behind the others. Nothing
        // shows either from outside.
        tokio::time::sleep(Duration::from_millis(30)).await;
        everywhere(10).await;
        tokio::time::sleep(Duration::from_millis(180)).await;
        servers().thaw(Server::Cassandra);
        for view in View::ALL {
            town.caught_up(view).await;
        }
        town.audited().await;
    }
}
