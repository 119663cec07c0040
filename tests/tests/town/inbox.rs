//! What a device has not stored yet.

use std::collections::BTreeSet;

use crate::{Size, Town, Value, check, check_part, json, without};

fn places(messages: &[Value]) -> Vec<(String, u64)> {
    let place = |message: &Value| {
        let conversation = message["conversation_id"].as_str().unwrap();
        (conversation.to_owned(), message["seq"].as_u64().unwrap())
    };
    messages.iter().map(place).collect()
}

#[tokio::test]
async fn every_device_stores_every_message_once() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 6).await;
        scene.user("anna").says("g1", "mine too").await;
        let anna = scene.user("anna");
        assert_eq!(
            anna.pending("g1", "phone").await,
            (1..=7).collect::<Vec<_>>()
        );
        anna.acks("g1", 4, "phone").await;
        assert_eq!(anna.pending("g1", "phone").await, [5, 6, 7]);
        assert_eq!(
            anna.pending("g1", "laptop").await,
            (1..=7).collect::<Vec<_>>()
        );
        anna.acks("g1", 2, "phone").await;
        assert_eq!(
            anna.pending("g1", "phone").await,
            [5, 6, 7],
            "an acknowledgement never goes back"
        );
        anna.acks("g1", 99, "phone").await;
        assert_eq!(anna.pending("g1", "phone").await, [] as [u64; 0]);
        scene.user("bo").says("g1", "eight").await;
        assert_eq!(anna.pending("g1", "phone").await, [8]);
        // Storing is not reading, and the other members' devices are theirs.
        check_part(
            &anna.session("g1").await,
            &json!({"read_seq": 7, "unread": 1}),
        );
        assert_eq!(
            scene.user("bo").pending("g1", "phone").await,
            (1..=8).collect::<Vec<_>>()
        );
    }
}

/// A20.
#[tokio::test]
async fn a_pull_that_breaks_off_goes_on_from_what_was_acknowledged() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        for conversation in ["g1", "g2", "g3"] {
            scene.group(conversation, &["anna", "bo"]).await;
            scene.user("bo").says_many(conversation, 33).await;
        }
        let anna = scene.user("anna");
        let mut stored = BTreeSet::new();
        let mut path = "/inbox?device=phone&limit=10".to_owned();
        for _ in 0..3 {
            let page = anna.read(&path).await.is(200);
            let messages = page["messages"].as_array().unwrap();
            assert_eq!(messages.len(), 10);
            for (conversation, seq) in places(messages) {
                assert!(
                    stored.insert((conversation.clone(), seq)),
                    "{conversation} {seq} came twice"
                );
                anna.acks(&conversation, seq, "phone").await;
            }
            path = format!(
                "/inbox?device=phone&limit=10&cursor={}",
                page["next_cursor"].as_str().unwrap()
            );
        }
        // The connection is gone, and the cursor with it.
        for (conversation, seq) in places(&anna.pulls("phone", 10).await) {
            assert!(
                stored.insert((conversation.clone(), seq)),
                "{conversation} {seq} came twice"
            );
        }
        assert_eq!(stored.len(), 99, "nothing is missing");
    }
}

#[tokio::test]
async fn a_pull_ends_although_more_is_said_meanwhile() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 10).await;
        let anna = scene.user("anna");
        let page = anna.read("/inbox?device=phone&limit=4").await.is(200);
        let mut seqs: Vec<u64> = places(page["messages"].as_array().unwrap())
            .into_iter()
            .map(|(_, seq)| seq)
            .collect();
        let mut cursor = page["next_cursor"].as_str().map(str::to_owned);
        while let Some(at) = cursor {
            scene.user("bo").says("g1", "more").await;
            let page = anna
                .read(&format!("/inbox?device=phone&limit=4&cursor={at}"))
                .await
                .is(200);
            seqs.extend(
                places(page["messages"].as_array().unwrap())
                    .into_iter()
                    .map(|(_, seq)| seq),
            );
            cursor = page["next_cursor"].as_str().map(str::to_owned);
        }
        assert_eq!(
            seqs,
            (1..=10).collect::<Vec<_>>(),
            "what came after the first page is for the next pull"
        );
        anna.acks("g1", 10, "phone").await;
        let rest = anna.pending("g1", "phone").await;
        assert!(rest.len() >= 2 && rest[0] == 11, "{rest:?}");
    }
}

#[tokio::test]
async fn the_inbox_shows_edits_and_recalls_and_leaves_out_what_is_hidden_or_cleared() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        let (anna, bo) = (scene.user("anna"), scene.user("bo"));
        bo.says_many("g1", 5).await;
        anna.clears("g1").await;
        bo.says_many("g1", 5).await;
        bo.edits("g1", 6, json!({"body": "edited", "mentions": ["anna"]}))
            .await;
        bo.recalls("g1", 7).await;
        anna.hides("g1", 8).await;
        let pulled = anna.pulls("phone", 2).await;
        let seqs: Vec<u64> = places(&pulled).into_iter().map(|(_, seq)| seq).collect();
        assert_eq!(seqs, [6, 7, 9, 10]);
        check_part(
            &pulled[0],
            &json!({"body": "edited", "mentions": ["anna"], "recalled": false}),
        );
        check_part(&pulled[1], &json!({"body": null, "recalled": true}));
        // It is the same message as in the permanent record.
        let history = anna.history("g1", "after=0").await;
        check(&Value::from(pulled), &Value::from(history));
    }
}

#[tokio::test]
async fn one_pull_has_all_conversations_whatever_their_size() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    let mut expected = BTreeSet::new();
    for (conversation, crowd) in [("small", 0), ("middling", 4), ("large", 12)] {
        let crowd: Vec<String> = (0..crowd).map(|number| format!("crowd-{number}")).collect();
        let members: Vec<&str> = ["anna", "bo"]
            .into_iter()
            .chain(crowd.iter().map(String::as_str))
            .collect();
        scene.group(conversation, &members).await;
        scene.user("bo").says_many(conversation, 7).await;
        expected.extend((1..=7).map(|seq| (conversation.to_owned(), seq)));
    }
    scene.direct("direct", ["anna", "cem"]).await;
    scene.user("cem").says("direct", "hi").await;
    expected.insert(("direct".to_owned(), 1));
    let anna = scene.user("anna");
    for limit in [1, 5, 500] {
        let pulled = places(&anna.pulls("phone", limit).await);
        let once: BTreeSet<_> = pulled.iter().cloned().collect();
        assert_eq!(pulled.len(), once.len(), "each once in pages of {limit}");
        assert_eq!(once, expected, "in pages of {limit}");
    }
}

#[tokio::test]
async fn who_left_and_came_back_stores_what_was_said_while_they_were_there() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["bo", "anna"]).await;
        let (anna, bo) = (scene.user("anna"), scene.user("bo"));
        bo.says_many("g1", 3).await;
        bo.removes("g1", &["anna"]).await;
        bo.says_many("g1", 3).await;
        assert_eq!(anna.pending("g1", "phone").await, [1, 2, 3]);
        bo.adds("g1", &["anna"]).await;
        bo.says_many("g1", 3).await;
        assert_eq!(anna.pending("g1", "phone").await, [1, 2, 3, 7, 8, 9]);
        anna.acks("g1", 5, "phone").await;
        assert_eq!(anna.pending("g1", "phone").await, [7, 8, 9]);
    }
}

#[tokio::test]
async fn a_page_is_bounded_in_bytes_too() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        let large = "x".repeat(60 << 10);
        for _ in 0..40 {
            scene.user("bo").says("g1", &large).await;
        }
        let anna = scene.user("anna");
        let page = anna.read("/inbox?device=phone&limit=500").await;
        assert!(
            page.text.len() < 2 << 20,
            "a page of {} bytes",
            page.text.len()
        );
        let page = page.is(200);
        assert!(page["next_cursor"].is_string(), "there is more");
        assert_eq!(
            anna.pending("g1", "phone").await,
            (1..=40).collect::<Vec<_>>()
        );
        let all = anna
            .all("/conversations/g1/messages?after=0&limit=200", "messages")
            .await;
        assert_eq!(all.len(), 40);
        check(
            &without(&all[39], &["logged_at", "event_id", "body"])["seq"],
            &json!(40),
        );
    }
}
