//! A store or a broker that goes away: what is told meanwhile, and that everything goes on afterwards.

use tidemark_e2e::{
    Answer,
    audit::audit,
    load::Load,
    servers::{Server, servers},
};
use uuid::Uuid;

use crate::{PATIENCE, Size, Town, Value, View, check_part, json, until};

/// Whether there is nothing to break: servers in containers.
fn cannot_fail() -> bool {
    let cannot = !servers().can_fail();
    if cannot {
        eprintln!("skipped: these servers are no processes of this machine");
    }
    cannot
}

/// A 503 that says when to come back.
#[track_caller]
fn is_away(answer: Answer, kind: &str) -> Value {
    let retry_after = answer
        .header("retry-after")
        .and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(
        retry_after.is_some_and(|seconds| (1..=60).contains(&seconds)),
        "no Retry-After: {answer:?}"
    );
    answer.is_problem(503, kind)
}

#[tokio::test]
async fn a_store_that_goes_away_is_waited_for() {
    if cannot_fail() {
        return;
    }
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
    let load = Load::of(21, 600);
    load.append(&scene, 0..200).await;
    audit(&scene, &load.cast()).await;

    servers().kill(Server::Cassandra);
    // Events that no view judges are taken all the same: the log is there.
    load.append(&scene, 200..400).await;
    let anna = scene.user("anna");
    is_away(anna.get("/sessions").await, "store_unavailable");
    is_away(
        anna.get("/conversations/c1/messages").await,
        "store_unavailable",
    );
    let (status, _) = town.gateways()[0].page("/readyz").await.unwrap();
    assert_eq!(status, 503, "a gateway without a store is not ready");
    let (status, _) = town.gateways()[0].page("/healthz").await.unwrap();
    assert_eq!(status, 200, "and is alive");
    // Who starts now waits as well.
    let late = [town.begin_gateway(), town.begin_worker(View::Roaming)];
    until("the late ones met no store", PATIENCE, async || {
        let ended: Vec<_> = late.iter().filter_map(|process| process.ended()).collect();
        assert!(
            ended.is_empty(),
            "a process ended for want of a store: {ended:?}"
        );
        match late[0].page("/readyz").await {
            Ok((200, text)) => panic!("ready without a store: {text}"),
            Ok(_) => Ok(()),
            // It may not listen yet: that is not ready either. The worker has had the time to try.
            Err(_) if town.worker(View::Roaming).page("/readyz").await.is_err() => Ok(()),
            Err(error) => Err(error),
        }
    })
    .await;

    servers().start().await;
    load.append(&scene, 400..600).await;
    town.all_ready().await;
    audit(&scene, &load.cast()).await;
    town.audited().await;
    town.end_all().await;
}

/// P15, P21: it does not answer, which is worse than being gone.
#[tokio::test]
async fn a_store_that_hangs_is_waited_for() {
    if cannot_fail() {
        return;
    }
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
    let load = Load::of(15, 400);
    load.append(&scene, 0..100).await;
    servers().freeze(Server::Cassandra);
    load.append(&scene, 100..400).await;
    is_away(
        scene.user("anna").get("/sessions").await,
        "store_unavailable",
    );
    servers().thaw(Server::Cassandra);
    audit(&scene, &load.cast()).await;
    town.all_ready().await;
    town.end_all().await;
}

#[tokio::test]
async fn a_broker_that_goes_away_is_told_of_and_comes_back() {
    if cannot_fail() {
        return;
    }
    let town = Town::in_turn().await;
    for line in [
        "an event was not appended",
        "an event may have been appended or not",
        "the log's end could not be asked for",
        "the consumer met an error and goes on",
        "the client met an error",
        "Kafka",
        "librdkafka",
        "rdkafka",
    ] {
        town.foresees(line);
    }
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    scene.user("bo").says("g1", "one").await;
    check_part(
        &scene.user("anna").session("g1").await,
        &json!({"unread": 1}),
    );

    servers().kill(Server::Kafka);
    let (bo, id) = (scene.user("bo"), Uuid::now_v7());
    let send = json!({"body": "two", "event_id": id});
    let path = "/conversations/g1/messages";
    let away = is_away(bo.post(path, send.clone()).await, "log_unavailable");
    assert_eq!(away["event_id"], json!(id), "the id to try again with");
    // Nobody is refused on a view that may be behind the log.
    let refused = scene.user("eve").post(path, json!({"body": "x"})).await;
    let kind = refused.body["type"]
        .as_str()
        .unwrap_or_default()
        .rsplit(':')
        .next()
        .unwrap_or_default()
        .to_owned();
    is_away(refused, &kind);
    // What is there can be read.
    check_part(
        &scene.user("anna").get("/sessions").await.is(200)["sessions"][0],
        &json!({"unread": 1}),
    );
    let (status, _) = town.gateways()[0].page("/readyz").await.unwrap();
    assert_eq!(status, 503);

    servers().start().await;
    until("sent again", PATIENCE, async || {
        let answer = bo.post(path, send.clone()).await;
        if answer.status == 202 {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
    bo.says("g1", "three").await;
    let history = scene.user("anna").history("g1", "after=0").await;
    let bodies: Vec<&str> = history
        .iter()
        .map(|message| message["body"].as_str().unwrap())
        .collect();
    assert_eq!(bodies, ["one", "two", "three"]);
    scene
        .user("eve")
        .post(path, json!({"body": "x"}))
        .await
        .is_problem(403, "not_a_member");
    check_part(
        &scene.user("anna").session("g1").await,
        &json!({"unread": 3}),
    );
    assert_eq!(scene.user("anna").pending("g1", "phone").await, [1, 2, 3]);
    town.all_ready().await;
    town.end_all().await;
}
