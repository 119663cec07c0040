//! What ends by the passing of time: the dedupe window, and copies in inboxes. In a town of its own, where both are a
//! few seconds.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidemark_e2e::{
    Scene, Settings, Size, Town,
    audit::{Cast, audit},
    check, check_part,
    load::Load,
    until, without,
};
use uuid::Uuid;

fn brief() -> Settings {
    Settings {
        dedupe_window: Duration::from_secs(6),
        inbox_period: Duration::from_secs(3),
        inbox_ttl: Duration::from_secs(3),
        ..Settings::default()
    }
}

/// Waits until a stretch of time has passed: here that is what is waited for.
async fn passed(stretch: Duration, since: Instant) {
    until("later", stretch * 2, async || {
        if since.elapsed() > stretch {
            Ok(())
        } else {
            Err(since.elapsed())
        }
    })
    .await;
}

#[tokio::test]
async fn an_event_id_is_remembered_for_the_window_and_no_longer() {
    let town = Town::shared_with(brief()).await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let (bo, id) = (scene.user("bo"), Uuid::now_v7());
    let began = Instant::now();
    let mut sends = 0;
    while began.elapsed() < brief().dedupe_window * 5 / 2 {
        bo.sends("g1", json!({"body": format!("{sends}"), "event_id": id}))
            .await;
        sends += 1;
        passed(Duration::from_millis(500) * sends, began).await;
    }
    let newest = bo.history("g1", &format!("event_id={id}")).await;
    // A repetition does not lengthen the window, so that every window has one message, and only one.
    let cast = Cast {
        people: ["anna", "bo"].map(str::to_owned).into(),
        conversations: vec!["g1".to_owned()],
        devices: vec!["phone".to_owned()],
    };
    audit(&scene, &cast).await;
    let history = bo.history("g1", "after=0").await;
    assert!(
        history.len() >= 3 && history.len() * 2 < sends as usize,
        "of {sends} sends: {history:#?}"
    );
    assert_eq!(newest.last(), history.last(), "the id named the newest");
    passed(Duration::from_secs(7), Instant::now()).await;
    assert!(
        bo.history("g1", &format!("event_id={id}")).await.is_empty(),
        "it is not remembered any more"
    );
}

#[tokio::test]
async fn copies_that_have_expired_are_still_pulled() {
    let town = Town::shared_with(brief()).await;
    tokio::join!(
        expired_copies(town.scene(Size::Copied)),
        expired_copies(town.scene(Size::FannedOut)),
        expired_copies(town.scene(Size::Combined)),
    );
}

async fn expired_copies(scene: Scene<'_>) {
    scene.group("g1", &["anna", "bo"]).await;
    let (anna, bo) = (scene.user("anna"), scene.user("bo"));
    let began = Instant::now();
    bo.says_many("g1", 6).await;
    anna.acks("g1", 1, "phone").await;
    let before = anna.pulls("phone", 4).await;
    // The period of 3 s has ended by then, and 3 s after that all of its copies expire.
    passed(Duration::from_secs(7), began).await;
    check(
        &Value::from(anna.pulls("phone", 4).await),
        &Value::from(before),
    );
    assert_eq!(anna.pending("g1", "laptop").await, [1, 2, 3, 4, 5, 6]);

    // What happens to them afterwards is seen all the same.
    bo.edits("g1", 3, json!({"body": "edited late"})).await;
    bo.recalls("g1", 4).await;
    anna.hides("g1", 5).await;
    bo.says("g1", "new").await;
    let pulled = anna.pulls("phone", 2).await;
    let pulled: Value = pulled
        .iter()
        .map(|message| json!([message["seq"], message["body"], message["recalled"]]))
        .collect();
    let expected = json!([
        [2, "2 by bo", false],
        [3, "edited late", false],
        [4, null, true],
        [6, "6 by bo", false],
        [7, "new", false],
    ]);
    check(&without(&pulled, &[]), &expected);
    anna.acks("g1", 7, "phone").await;
    assert!(anna.pending("g1", "phone").await.is_empty());
    check_part(&anna.session("g1").await, &json!({"unread": 5}));
}

/// Events repeated within and beyond the window, while periods begin and copies expire.
#[tokio::test]
async fn a_walk_through_many_windows_ends_as_the_log_says() {
    const STRETCHES: usize = 16;
    const STRETCH: usize = 30;
    let town = Town::shared_with(brief()).await;
    let scene = town.scene(Size::AsIs);
    let began = Instant::now();
    let seed = std::env::var("TIDEMARK_WALK_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0);
    eprintln!("TIDEMARK_WALK_SEED={seed}");
    let load = Load::of(seed, STRETCHES * STRETCH);
    for stretch in 0..STRETCHES {
        load.append(&scene, stretch * STRETCH..(stretch + 1) * STRETCH)
            .await;
        passed(Duration::from_millis(1_000) * (stretch as u32 + 1), began).await;
    }
    audit(&scene, &load.cast()).await;
}
