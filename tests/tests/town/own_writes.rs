//! Reading one's own writes: positions, `?wait=`, event ids, two gateways.

use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::{Size, Town, Value, check_part, json};

#[tokio::test]
async fn a_position_makes_a_write_seen_through_the_other_gateway() {
    let town = Town::shared().await;
    let scene = town.scene(Size::FannedOut);
    scene.group("g1", &["anna", "bo"]).await;
    for number in 1..=10 {
        let path = "/conversations/g1/messages";
        let body = json!({"body": format!("{number}")});
        let written = scene.user("bo").through(0).post(path, body).await.is(202);
        let position = written["position"].as_str().unwrap();
        let anna = scene.user("anna").through(1);

        let read = anna.get(&format!("{path}?after=0&at={position}")).await;
        assert!(!read.is_stale());
        assert_eq!(read.is(200)["messages"].as_array().unwrap().len(), number);
        let read = anna.get(&format!("/sessions?at={position}")).await;
        assert!(!read.is_stale());
        check_part(
            &read.is(200)["sessions"][0],
            &json!({"last_seq": number, "unread": number}),
        );
        let read = anna
            .get(&format!("/inbox?device=phone&at={position}"))
            .await;
        assert!(!read.is_stale());
        assert_eq!(read.is(200)["messages"].as_array().unwrap().len(), number);
    }
}

#[tokio::test]
async fn a_list_waits_for_positions_in_several_partitions() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    let mut at = Vec::new();
    for partition in 0..4 {
        let conversation = scene.name_in_partition("g", partition);
        let body = json!({"kind": "group", "members": ["anna"]});
        let written = scene
            .user("anna")
            .put(&format!("/conversations/{conversation}"), body)
            .await
            .is(202);
        at.push(format!("at={}", written["position"].as_str().unwrap()));
    }
    let read = scene
        .user("anna")
        .get(&format!("/sessions?{}", at.join("&")))
        .await;
    assert!(!read.is_stale());
    assert_eq!(read.is(200)["sessions"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_send_may_follow_anothers_creation_at_once_through_another_gateway() {
    let town = Town::shared().await;
    for round in 0..10 {
        let scene = town.scene(Size::AsIs);
        let (one, other) = (round % 2, (round + 1) % 2);
        let body = json!({"kind": "group", "members": ["anna", "bo"]});
        scene.user("anna").through(one).creates("g1", body).await;
        scene.user("bo").through(other).says("g1", "hello").await;
        scene.user("bo").through(one).recalls("g1", 1).await;
        scene.user("bo").through(other).adds("g1", &["cem"]).await;
        scene.user("cem").through(one).says("g1", "thanks").await;
    }
}

#[tokio::test]
async fn a_send_that_waits_is_answered_with_the_message() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        for seq in 1..=3 {
            let path = "/conversations/g1/messages?wait=20";
            let body = json!({"body": "hi", "mentions": ["anna"]});
            let sent = scene.user("bo").post(path, body).await.is(201);
            check_part(
                &sent,
                &json!({"seq": seq, "body": "hi", "sender": "bo", "mentions": ["anna"]}),
            );
        }
    }
}

#[tokio::test]
async fn a_repeated_send_that_waits_is_answered_with_the_first_message() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let id = Uuid::now_v7();
    for body in ["first", "second"] {
        let body = json!({"body": body, "event_id": id});
        let path = "/conversations/g1/messages?wait=20";
        let message = scene.user("bo").post(path, body).await.is(201);
        check_part(
            &message,
            &json!({"seq": 1, "body": "first", "event_id": id}),
        );
    }
}

#[tokio::test]
async fn an_event_id_that_is_repeated_changes_nothing_whatever_comes_with_it() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let (bo, id) = (scene.user("bo"), Uuid::now_v7());
    let first = bo
        .post(
            "/conversations/g1/messages",
            json!({"body": "once", "event_id": id}),
        )
        .await
        .is(202);
    assert_eq!(first["event_id"], json!(id));
    for body in ["once", "twice"] {
        let again = bo
            .post(
                "/conversations/g1/messages",
                json!({"body": body, "event_id": id}),
            )
            .await
            .is(202);
        assert_eq!(again["event_id"], json!(id));
    }
    // The id is the conversation's, not the call's: another kind of event changes nothing either.
    bo.put(
        &format!("/conversations/g1/read?event_id={id}"),
        json!({"seq": 1}),
    )
    .await;
    scene
        .user("anna")
        .delete(&format!("/conversations/g1/history?event_id={id}"))
        .await
        .is(202);
    bo.says("g1", "next").await;
    let history = scene.user("anna").history("g1", "after=0").await;
    let bodies: Vec<&Value> = history.iter().map(|message| &message["body"]).collect();
    assert_eq!(bodies, ["once", "next"]);

    // In another conversation it is another event's.
    scene.group("g2", &["anna", "bo"]).await;
    bo.sends("g2", json!({"body": "elsewhere", "event_id": id}))
        .await;
    assert_eq!(scene.user("anna").seqs("g2", "after=0").await, [1]);
}

#[tokio::test]
async fn an_id_of_any_version_in_any_case_names_the_same_event() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let bo = scene.user("bo");
    for id in [
        "6BA7B810-9DAD-11D1-80B4-00C04FD430C8",
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    ] {
        bo.sends("g1", json!({"body": "hi", "event_id": id})).await;
    }
    assert_eq!(bo.seqs("g1", "after=0").await, [1]);
    let odd = bo
        .post(
            "/conversations/g1/messages",
            json!({"body": "hi", "event_id": "7"}),
        )
        .await;
    odd.is_wrong_in("event_id");
}

#[tokio::test]
async fn one_hears_what_became_of_a_send_by_its_event_id() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let (bo, id) = (scene.user("bo"), Uuid::now_v7());
    bo.sends("g1", json!({"body": "hi", "event_id": id})).await;
    let found = bo.history("g1", &format!("event_id={id}")).await;
    assert_eq!(found.len(), 1);
    check_part(&found[0], &json!({"seq": 1, "body": "hi", "event_id": id}));
    let found = bo
        .history("g1", &format!("event_id={}", Uuid::now_v7()))
        .await;
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn a_read_that_waits_in_vain_answers_what_there_is_and_says_so() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    scene.user("bo").says("g1", "hi").await;
    scene.user("anna").session("g1").await;
    // A position is opaque to clients. This one is made up: its event will not come for a while.
    let far = "0-4000000000";
    let anna = scene.user("anna");
    let reads = [
        "/sessions?",
        "/mentions?",
        "/inbox?device=phone&",
        "/conversations/g1/messages?after=0&",
    ]
    .map(async |path| {
        let began = Instant::now();
        let read = anna.get(&format!("{path}at={far}")).await;
        assert!(read.is_stale(), "{path}: {read:?}");
        let took = began.elapsed();
        assert!(took < Duration::from_secs(10), "{path} took {took:?}");
        read.is(200);
    });
    futures::future::join_all(reads).await;
    scene
        .user("anna")
        .get("/sessions?at=nonsense")
        .await
        .is_wrong_in("at");
}
