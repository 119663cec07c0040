//! From a write to the permanent record: what was sent, edited, recalled, hidden and cleared, and pages of it.

use crate::{Size, Town, Value, check, check_part, json, without};

/// What no test foresees of a message.
const UNFORESEEN: [&str; 2] = ["logged_at", "event_id"];

fn bodies(messages: &[Value]) -> Value {
    messages
        .iter()
        .map(|message| message["body"].clone())
        .collect()
}

fn message(seq: u64, sender: &str, body: &str) -> Value {
    json!({
        "conversation_id": "g1", "seq": seq, "sender": sender, "body": body, "content_type": "text", "mentions": [],
        "mention_all": false, "silent": false, "reply_to": null, "edited_at": null, "recalled": false,
        "occurred_at": null,
    })
}

#[tokio::test]
async fn a_message_is_in_everybodys_history_as_it_was_sent() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo", "cem"]).await;
        scene.user("bo").says("g1", "hello").await;
        let all = json!({
            "body": "and <b>this</b> \u{1F30A}\n", "content_type": "text/x-own", "mentions": ["cem", "anna", "cem"],
            "mention_all": true, "silent": true, "reply_to": 1,
            "event_id": "0190c0de-0000-7000-8000-000000000007", "occurred_at": "2031-05-01T12:30:00.250+02:00",
        });
        scene.user("anna").sends("g1", all).await;

        let mut second = message(2, "anna", "and <b>this</b> \u{1F30A}\n");
        second["content_type"] = json!("text/x-own");
        second["mentions"] = json!(["anna", "cem"]);
        second["mention_all"] = json!(true);
        second["silent"] = json!(true);
        second["reply_to"] = json!(1);
        second["occurred_at"] = json!("2031-05-01T10:30:00.250Z");
        for reader in ["anna", "bo", "cem"] {
            let history = scene.user(reader).history("g1", "after=0").await;
            let found = without(&Value::from(history.clone()), &UNFORESEEN);
            check(&found, &json!([message(1, "bo", "hello"), second]));
            assert_eq!(
                history[1]["event_id"],
                "0190c0de-0000-7000-8000-000000000007"
            );
            let made = history[0]["event_id"].as_str().unwrap();
            assert_eq!(
                uuid_version(made),
                7,
                "an id that is made is of version 7: {made}"
            );
            for message in history {
                let logged_at: jiff::Timestamp =
                    message["logged_at"].as_str().unwrap().parse().unwrap();
                let age = jiff::Timestamp::now().duration_since(logged_at);
                assert!(age.as_secs().abs() < 120, "logged {age} ago");
                assert!(
                    message["logged_at"].as_str().unwrap().ends_with('Z'),
                    "times are in UTC"
                );
            }
        }
    }
}

fn uuid_version(text: &str) -> usize {
    text.parse::<uuid::Uuid>().unwrap().get_version_num()
}

#[tokio::test]
async fn history_is_read_before_after_and_around_a_seq() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    scene.user("bo").says_many("g1", 12).await;
    let anna = scene.user("anna");
    for (query, expected) in [
        ("before=5&limit=2", vec![3, 4]),
        ("before=3&limit=50", vec![1, 2]),
        ("before=1", vec![]),
        ("before=13&limit=3", vec![10, 11, 12]),
        ("before=500&limit=1", vec![12]),
        ("after=5&limit=2", vec![6, 7]),
        ("after=0&limit=1", vec![1]),
        ("after=10", vec![11, 12]),
        ("after=12", vec![]),
        ("after=99", vec![]),
        ("around=6&limit=3", vec![5, 6, 7]),
        ("around=6&limit=1", vec![6]),
        ("limit=200", (1..=12).collect()),
        ("limit=2", vec![11, 12]),
    ] {
        assert_eq!(anna.seqs("g1", query).await, expected, "{query}");
    }
    // The page lies about the seq, also at an end, and never holds more than it may.
    for around in [1, 2, 11, 12] {
        let seqs = anna.seqs("g1", &format!("around={around}&limit=5")).await;
        assert!(
            seqs.contains(&around) && seqs.len() <= 5 && seqs.is_sorted(),
            "around {around}: {seqs:?}"
        );
    }
}

#[tokio::test]
async fn cursors_walk_a_history_to_its_end_in_either_direction() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    scene.user("bo").says_many("g1", 11).await;
    let walk = async |query: &str| {
        let path = format!("/conversations/g1/messages?{query}&limit=4");
        let messages = scene.user("anna").all(&path, "messages").await;
        let mut seqs: Vec<u64> = messages
            .iter()
            .map(|message| message["seq"].as_u64().unwrap())
            .collect();
        assert_eq!(seqs.len(), 11, "{query}: each once, {seqs:?}");
        seqs.sort_unstable();
        assert_eq!(seqs, (1..=11).collect::<Vec<_>>(), "{query}");
    };
    walk("after=0").await;
    walk("before=12").await;
}

#[tokio::test]
async fn one_jumps_to_any_place_of_a_long_history_by_one_page() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    scene.user("bo").says_many("g1", 2_500).await;
    let anna = scene.user("anna");
    assert_eq!(anna.seqs("g1", "around=7&limit=3").await, [6, 7, 8]);
    assert_eq!(
        anna.seqs("g1", "around=1000&limit=3").await,
        [999, 1000, 1001]
    );
    let page = anna.seqs("g1", "after=1900&limit=200").await;
    assert_eq!(page, (1901..=2100).collect::<Vec<_>>());
    let page = anna.history("g1", "before=2501&limit=1").await;
    check_part(&page[0], &json!({"seq": 2500, "body": "2500 by bo"}));
}

#[tokio::test]
async fn an_edit_replaces_the_text_and_the_mentions_it_names() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        let bo = scene.user("bo");
        bo.sends("g1", json!({"body": "first", "mentions": ["anna"]}))
            .await;
        bo.edits("g1", 1, json!({"body": "second"})).await;
        let found = scene.user("anna").history("g1", "after=0").await;
        check_part(
            &found[0],
            &json!({"body": "second", "mentions": ["anna"], "recalled": false}),
        );
        let edited_at = found[0]["edited_at"].as_str().unwrap().to_owned();
        assert!(edited_at.as_str() >= found[0]["logged_at"].as_str().unwrap());

        bo.edits("g1", 1, json!({"body": "third", "mentions": []}))
            .await;
        let found = scene.user("anna").history("g1", "after=0").await;
        check_part(&found[0], &json!({"body": "third", "mentions": []}));
        assert!(found[0]["edited_at"].as_str().unwrap() >= edited_at.as_str());
    }
}

#[tokio::test]
async fn a_recalled_message_keeps_its_seq_and_loses_its_body_for_ever() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        let bo = scene.user("bo");
        for body in ["one", "two", "three"] {
            bo.says("g1", body).await;
        }
        bo.recalls("g1", 2).await;
        bo.recalls("g1", 2).await;
        bo.edits("g1", 2, json!({"body": "not any more"})).await;
        for reader in ["anna", "bo"] {
            let history = scene.user(reader).history("g1", "after=0").await;
            check(&bodies(&history), &json!(["one", null, "three"]));
            check_part(
                &history[1],
                &json!({"seq": 2, "recalled": true, "edited_at": null, "sender": "bo"}),
            );
        }
    }
}

#[tokio::test]
async fn a_hidden_message_is_left_out_for_who_hid_it_and_before_the_limit_counts() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 8).await;
        let anna = scene.user("anna");
        for seq in [2, 3, 4, 8] {
            anna.hides("g1", seq).await;
        }
        anna.hides("g1", 3).await;
        assert_eq!(anna.seqs("g1", "after=1&limit=2").await, [5, 6]);
        assert_eq!(anna.seqs("g1", "before=6&limit=2").await, [1, 5]);
        assert_eq!(anna.seqs("g1", "limit=2").await, [6, 7]);
        assert_eq!(
            scene.user("bo").seqs("g1", "after=0").await,
            (1..=8).collect::<Vec<_>>()
        );
    }
}

#[tokio::test]
async fn clearing_takes_away_everything_up_to_now_and_nothing_later() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 100).await;
        let anna = scene.user("anna");
        anna.clears("g1").await;
        assert_eq!(anna.seqs("g1", "after=0").await, [] as [u64; 0]);
        check_part(
            &anna.session("g1").await,
            &json!({"cleared_to": 100, "read_seq": 100, "unread": 0, "last_message": null, "last_seq": 100}),
        );
        scene.user("bo").says("g1", "later").await;
        assert_eq!(anna.seqs("g1", "after=0").await, [101]);
        assert_eq!(anna.seqs("g1", "around=50").await, [101]);
        assert_eq!(
            scene.user("bo").seqs("g1", "before=101&limit=1").await,
            [100]
        );
    }
}

#[tokio::test]
async fn senders_clocks_are_shown_and_order_nothing() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let bo = scene.user("bo");
    for occurred_at in [
        "2000-01-01T00:00:00Z",
        "2099-12-31T23:59:59.999Z",
        "2026-01-01T00:00:00Z",
    ] {
        bo.sends(
            "g1",
            json!({"body": occurred_at, "occurred_at": occurred_at}),
        )
        .await;
    }
    bo.says("g1", "now").await;
    let anna = scene.user("anna");
    let history = anna.history("g1", "after=0").await;
    let expected = json!([
        "2000-01-01T00:00:00Z",
        "2099-12-31T23:59:59.999Z",
        "2026-01-01T00:00:00Z",
        "now"
    ]);
    check(&bodies(&history), &expected);
    // Nothing counts as read because of the message that claims to be from the future.
    check_part(
        &anna.session("g1").await,
        &json!({"unread": 4, "read_seq": 0}),
    );
    anna.reads_to("g1", 2).await;
    check_part(
        &anna.session("g1").await,
        &json!({"unread": 2, "read_seq": 2}),
    );
}

#[tokio::test]
async fn a_body_is_as_long_as_it_may_be_and_comes_back_whole() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        let longest = "ä".repeat(32 << 10);
        scene.user("bo").says("g1", &longest).await;
        scene.user("bo").says("g1", "").await;
        let anna = scene.user("anna");
        check(
            &bodies(&anna.history("g1", "after=0").await),
            &json!([longest, ""]),
        );
        check(
            &bodies(&anna.pulls("phone", 10).await),
            &json!([longest, ""]),
        );
        scene.user("bo").says("g1", &longest).await;
        let preview = anna.session("g1").await["last_message"]["preview"].clone();
        check(&preview, &json!("ä".repeat(100)));
    }
}

#[tokio::test]
async fn ids_may_be_any_text() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    let conversation = "g/1 ?&=%20+\u{1F40B} é'\"";
    scene
        .user("an na#/é")
        .creates(
            conversation,
            json!({"kind": "group", "members": ["an na#/é", "bo%"]}),
        )
        .await;
    scene.user("bo%").says(conversation, "hi").await;
    let history = scene.user("bo%").history(conversation, "after=0").await;
    check_part(
        &history[0],
        &json!({"conversation_id": conversation, "sender": "bo%", "seq": 1}),
    );
    assert_eq!(scene.user("bo%").pending(conversation, "pho/ne").await, [1]);
}
