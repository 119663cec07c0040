//! Workers that are told to end, killed, frozen and woken, alone and in pairs.

use std::{sync::Arc, time::Duration};

use tidemark_e2e::{audit::audit, load::Load};
use uuid::Uuid;

use crate::{PATIENCE, Process, Size, Town, Value, View, check_part, json, kafka, until};

/// A18.
#[tokio::test]
async fn a_worker_told_to_end_in_the_middle_of_a_load_leaves_nothing_half_done() {
    let town = Town::in_turn().await;
    let scene = town.scene(Size::AsIs);
    let load = Load::of(18, 900);
    for (round, view) in View::ALL.into_iter().enumerate() {
        let worker = town.worker(view);
        let (status, ()) = tokio::join!(
            worker.terminate(),
            load.append(&scene, round * 300..(round + 1) * 300)
        );
        assert!(status.success(), "{}: {status}", view.name());
        town.start_worker(view).await;
    }
    audit(&scene, &load.cast()).await;
    town.audited().await;
}

/// A2, A6, B10. A stable name lets a restarted worker have its partitions back at once.
#[tokio::test]
async fn workers_killed_in_the_middle_of_a_load_lose_and_double_nothing() {
    const ROUNDS: usize = 4;
    let town = Town::in_turn().await;
    let start = |view: View| {
        town.begin_worker_with(
            view,
            &["--static-member-id", view.name(), "--batch-records", "40"],
        )
    };
    for view in View::ALL {
        assert!(town.worker(view).terminate().await.success());
        start(view);
    }
    town.all_ready().await;
    let scene = town.scene(Size::AsIs);
    let load = Load::of(2, ROUNDS * 200);
    for round in 0..ROUNDS {
        let kills = async {
            for (nth, view) in View::ALL.into_iter().enumerate() {
                // Somewhere in the middle of its batches: anywhere will do, so this is no wait for anything.
                tokio::time::sleep(Duration::from_millis(30 + 17 * (round + nth) as u64)).await;
                town.worker(view).kill();
                start(view);
            }
        };
        tokio::join!(kills, load.append(&scene, round * 200..(round + 1) * 200));
    }
    town.all_ready().await;
    audit(&scene, &load.cast()).await;
    town.audited().await;
}

#[tokio::test]
async fn a_killed_worker_without_a_stable_name_is_replaced_once_the_group_misses_it() {
    let town = Town::in_turn().await;
    let scene = town.scene(Size::FannedOut);
    scene.group("g1", &["anna", "bo"]).await;
    for view in View::ALL {
        town.worker(view).kill();
        town.begin_worker(view);
    }
    scene.user("bo").says_many("g1", 50).await;
    check_part(
        &scene.user("anna").session("g1").await,
        &json!({"unread": 50}),
    );
    assert_eq!(scene.user("anna").pending("g1", "phone").await.len(), 50);
    town.all_ready().await;
}

/// A7, A9, P3, P19.
#[tokio::test]
async fn an_owner_that_was_frozen_replaced_and_woken_takes_nothing_back() {
    let town = Town::in_turn().await;
    // It hears from the group that it is no member any more, and from the checkpoint that others have gone on.
    for line in [
        "Consumer group session timed out",
        // It asks to join anew although the group has just told it to.
        "unexpected instruction to revoke current assignment and rebalance",
        "the consumer met an error and goes on",
        "the client met an error",
        "another worker has the partition",
        "the group could not be rebalanced",
    ] {
        town.foresees(line);
    }
    let scene = town.scene(Size::AsIs);
    let load = Load::of(9, 800);
    let mut owners = Vec::new();
    for view in View::ALL {
        let first = town.worker(view);
        let second = town.start_worker(view).await;
        shared(&first, &second).await;
        owners.push((first, second));
    }
    let (first, second): (Vec<Arc<Process>>, Vec<Arc<Process>>) = owners.into_iter().unzip();
    load.append(&scene, 0..200).await;
    tokio::join!(load.append(&scene, 200..400), async {
        for worker in &first {
            worker.freeze();
        }
    });
    load.append(&scene, 400..600).await;
    for worker in &second {
        has_all(worker).await;
    }
    for worker in &first {
        worker.thaw();
    }
    load.append(&scene, 600..800).await;
    for (first, second) in first.iter().zip(&second) {
        shared(first, second).await;
        first.ready().await;
        second.ready().await;
    }
    audit(&scene, &load.cast()).await;
    town.audited().await;
}

/// Waits until both have partitions, and each of the four is had once.
async fn shared(first: &Process, second: &Process) {
    until("the partitions shared", PATIENCE, async || {
        let one = first.metric("tidemark_lag_records").await;
        let other = second.metric("tidemark_lag_records").await;
        let all: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        let is_shared =
            !one.is_empty() && !other.is_empty() && one.len() + other.len() == 4 && all.len() == 4;
        if is_shared { Ok(()) } else { Err((one, other)) }
    })
    .await;
}

/// Waits until it has all partitions, and nothing left to fold in them.
async fn has_all(worker: &Process) {
    until("all partitions taken over", PATIENCE, async || {
        let lags = worker.metric("tidemark_lag_records").await;
        if lags.len() == 4 && lags.values().all(|lag| *lag == 0.0) {
            Ok(())
        } else {
            Err(lags)
        }
    })
    .await;
}

#[tokio::test]
async fn while_a_view_is_behind_nobody_is_refused_and_reads_say_so() {
    let town = Town::in_turn().await;
    for line in [
        "Consumer group session timed out",
        "the client met an error",
    ] {
        town.foresees(line);
    }
    let scene = town.scene(Size::AsIs);
    let [old, new, none] = ["old", "new", "none"].map(|name| scene.name_in_partition(name, 3));
    scene.group(&old, &["anna", "bo"]).await;
    scene.user("bo").says(&old, "hi").await;
    assert_eq!(scene.user("anna").seqs(&old, "after=0").await, [1]);

    town.worker(View::Roaming).freeze();
    scene.group(&new, &["anna", "bo"]).await;
    let path = |name: &str| format!("/conversations/{name}/messages");
    let (to_new, to_none, of_old) = (
        path(&new),
        path(&none),
        format!("{}?{}", path(&old), scene.at()),
    );
    let (anna, bo, eve) = (scene.user("anna"), scene.user("bo"), scene.user("eve"));
    let (sent, unknown, stranger, read) = tokio::join!(
        bo.post(&to_new, json!({"body": "too soon"})),
        anna.get(&to_none),
        eve.get(&of_old),
        anna.get(&of_old),
    );
    town.worker(View::Roaming).thaw();
    for answer in [sent, unknown, stranger] {
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        answer.is_problem(503, "view_behind");
    }
    assert!(read.is_stale(), "{read:?}");
    assert_eq!(read.is(200)["messages"].as_array().unwrap().len(), 1);

    anna.get(&to_none)
        .await
        .is_problem(404, "no_such_conversation");
    eve.get(&of_old).await.is_problem(403, "not_a_member");
    bo.says(&new, "now").await;
    assert_eq!(anna.seqs(&new, "after=0").await, [1]);
}

/// P5.
#[tokio::test]
async fn a_group_whose_offsets_are_forgotten_goes_on_from_the_checkpoint() {
    let town = Town::in_turn().await;
    let scene = town.scene(Size::AsIs);
    let load = Load::of(5, 400);
    load.append(&scene, 0..200).await;
    audit(&scene, &load.cast()).await;
    for view in View::ALL {
        assert!(town.worker(view).terminate().await.success());
    }
    let groups = kafka::groups("tidemark").await;
    let groups: Vec<String> = groups
        .into_iter()
        .filter(|group| View::ALL.iter().any(|view| group.contains(view.name())))
        .collect();
    assert!(groups.len() >= 3, "each view has its group: {groups:?}");
    kafka::forget_groups(&groups).await;
    load.append(&scene, 200..400).await;
    for view in View::ALL {
        town.start_worker(view).await;
    }
    audit(&scene, &load.cast()).await;
    for view in View::ALL {
        let folded = town.worker(view).metric("tidemark_records_total").await;
        let folded: f64 = folded.values().sum();
        assert!(
            folded <= load.events.len() as f64 - 200.0,
            "{} folded {folded} records",
            view.name()
        );
    }
}

#[tokio::test]
async fn what_a_killed_gateway_has_acknowledged_is_there_once() {
    let town = Town::in_turn().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let gateway = town.start_gateway().await;
    let url = format!(
        "{}/v1/conversations/{}/messages",
        gateway.url(),
        scene.on_wire("g1")
    );
    let ids: Vec<Uuid> = (0..200).map(|_| Uuid::now_v7()).collect();
    let client = reqwest::Client::new();
    let send = async |nth: usize| {
        let body = json!({"body": nth.to_string(), "event_id": ids[nth]});
        let request = client
            .post(&url)
            .header("X-User", scene.on_wire("bo"))
            .json(&body);
        request
            .send()
            .await
            .is_ok_and(|answer| answer.status() == 202)
    };
    let mut acknowledged = 0;
    while acknowledged < ids.len() && send(acknowledged).await {
        acknowledged += 1;
        if acknowledged == 60 {
            let gateway = Arc::clone(&gateway);
            std::thread::spawn(move || gateway.kill());
        }
    }
    assert!(
        (60..ids.len()).contains(&acknowledged),
        "{acknowledged} went through"
    );
    // What was acknowledged is there; what was not may be sent again, by the same id, through another gateway.
    for (nth, id) in ids.iter().enumerate().skip(acknowledged) {
        scene
            .user("bo")
            .sends("g1", json!({"body": nth.to_string(), "event_id": id}))
            .await;
    }
    let all = scene
        .user("anna")
        .all("/conversations/g1/messages?after=0&limit=200", "messages")
        .await;
    let bodies: Vec<String> = all
        .iter()
        .map(|message| message["body"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        bodies,
        (0..ids.len())
            .map(|nth| nth.to_string())
            .collect::<Vec<_>>()
    );
    let found: Vec<&Value> = all.iter().map(|message| &message["event_id"]).collect();
    assert_eq!(
        found,
        ids.iter()
            .map(|id| json!(id))
            .collect::<Vec<_>>()
            .iter()
            .collect::<Vec<_>>()
    );
}
