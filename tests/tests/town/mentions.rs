//! Mentions, by name and of all: the rows C of the scenarios.

use crate::{Size, Town, check_part, json};

/// C1, B21.
#[tokio::test]
async fn a_mention_counts_for_who_is_named_until_read() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo", "cem"]).await;
        scene.user("bo").says_many("g1", 4).await;
        scene
            .user("bo")
            .sends(
                "g1",
                json!({"body": "anna?", "mentions": ["anna", "eve", "bo"]}),
            )
            .await;
        let (anna, cem) = (scene.user("anna"), scene.user("cem"));
        let one = json!({"unread": 5, "unread_mentions": [5], "unread_mentions_count": 1, "mentioned_all": false});
        check_part(&anna.session("g1").await, &one);
        assert_eq!(anna.mentions().await, [("g1".to_owned(), 5)]);
        check_part(
            &cem.session("g1").await,
            &json!({"unread": 5, "unread_mentions": []}),
        );
        check_part(
            &scene.user("bo").session("g1").await,
            &json!({"unread": 0, "unread_mentions": []}),
        );
        anna.reads_to("g1", 5).await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 0, "unread_mentions": [], "unread_mentions_count": 0}),
        );
        assert!(anna.mentions().await.is_empty());
    }
}

/// C2.
#[tokio::test]
async fn mention_all_flags_everybody_but_the_sender() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo", "cem"]).await;
        scene
            .user("bo")
            .sends("g1", json!({"body": "all!", "mention_all": true}))
            .await;
        scene.user("bo").says("g1", "really").await;
        let flagged = json!({"mentioned_all": true, "mentioned_all_seq": 1, "unread": 2, "unread_mentions": []});
        let everybody = scene.crowded(&["anna", "bo", "cem"]);
        for name in everybody.iter().filter(|name| *name != "bo") {
            check_part(&scene.user(name).session("g1").await, &flagged);
        }
        check_part(
            &scene.user("bo").session("g1").await,
            &json!({"mentioned_all": false, "mentioned_all_seq": null, "unread": 0}),
        );
        assert!(
            scene.user("anna").mentions().await.is_empty(),
            "mentions are those by name"
        );
        scene.user("anna").reads_to("g1", 1).await;
        check_part(
            &scene.user("anna").session("g1").await,
            &json!({"mentioned_all": false, "unread": 1}),
        );
        scene.user("bo").recalls("g1", 1).await;
        check_part(
            &scene.user("cem").session("g1").await,
            &json!({"mentioned_all": false, "unread": 1}),
        );
    }
}

/// C4.
#[tokio::test]
async fn an_edit_adds_and_removes_mentions_of_what_is_unread() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo", "cem"]).await;
        let (anna, bo, cem) = (scene.user("anna"), scene.user("bo"), scene.user("cem"));
        bo.sends("g1", json!({"body": "anna", "mentions": ["anna"]}))
            .await;
        bo.edits(
            "g1",
            1,
            json!({"body": "cem, I meant", "mentions": ["cem"]}),
        )
        .await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 1, "unread_mentions": []}),
        );
        check_part(
            &cem.session("g1").await,
            &json!({"unread": 1, "unread_mentions": [1]}),
        );
        cem.reads_to("g1", 1).await;
        anna.reads_to("g1", 1).await;
        bo.edits(
            "g1",
            1,
            json!({"body": "both", "mentions": ["anna", "cem"]}),
        )
        .await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 0, "unread_mentions": []}),
        );
        // It is stored all the same, and is there when the message is unread again.
        anna.marks_unread("g1", 1).await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 1, "unread_mentions": [1]}),
        );
        bo.recalls("g1", 1).await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 0, "unread_mentions": []}),
        );
    }
}

/// C9.
#[tokio::test]
async fn a_mention_in_a_muted_conversation_is_a_mention() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        let anna = scene.user("anna");
        anna.sets("g1", json!({"muted": true})).await;
        scene
            .user("bo")
            .sends("g1", json!({"body": "anna", "mentions": ["anna"]}))
            .await;
        assert_eq!(anna.mentions().await, [("g1".to_owned(), 1)]);
        assert_eq!(anna.total_unread().await, 0);
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 1, "unread_mentions": [1]}),
        );
    }
}

#[tokio::test]
async fn silent_hidden_and_own_messages_mention_nobody() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        let (anna, bo) = (scene.user("anna"), scene.user("bo"));
        bo.sends(
            "g1",
            json!({"body": "psst", "mentions": ["anna"], "mention_all": true, "silent": true}),
        )
        .await;
        bo.sends("g1", json!({"body": "hide me", "mentions": ["anna"]}))
            .await;
        anna.hides("g1", 2).await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 0, "unread_mentions": [], "mentioned_all": false}),
        );
        let noted = json!({"body": "noted", "content_type": "system", "mentions": ["anna"], "mention_all": true});
        scene.service().sends("g1", noted).await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 0, "unread_mentions": [], "mentioned_all": false}),
        );
        assert!(anna.mentions().await.is_empty());
    }
}

/// C12: the reason Tidemark exists.
#[tokio::test]
async fn after_five_days_away_the_first_answer_has_every_mention() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        let mut lines = Vec::new();
        scene.groups(40, &["anna", "bo"]).await;
        let sent = |group: usize, payload| json!({"conversation_id": format!("g{group}"), "actor": "bo", "type": "MessageSent", "payload": payload});
        for number in 1..=899 {
            let mentions = if [12, 410, 899].contains(&number) {
                json!(["anna"])
            } else {
                json!([])
            };
            lines.push(sent(
                17,
                json!({"body": format!("{number}"), "mentions": mentions}),
            ));
        }
        lines.push(sent(3, json!({"body": "elsewhere"})));
        scene.service().appends(&lines).await;

        let anna = scene.user("anna");
        let first = anna.read("/sessions?limit=20").await.is(200);
        assert_eq!(first["total_unread"], 900);
        let sessions = first["sessions"].as_array().unwrap();
        let missed = sessions
            .iter()
            .find(|session| session["conversation_id"] == "g17");
        check_part(
            missed.unwrap(),
            &json!({"unread": 899, "unread_mentions": [12, 410, 899], "unread_mentions_count": 3}),
        );
        let expected = [899, 410, 12].map(|seq| ("g17".to_owned(), seq));
        assert_eq!(anna.mentions().await, expected);
        // Jumping to one is one page about it.
        assert_eq!(
            anna.seqs("g17", "around=410&limit=3").await,
            [409, 410, 411]
        );
    }
}

#[tokio::test]
async fn more_mentions_than_are_named_are_counted() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        let lines: Vec<_> = (1..=130)
            .map(|number| {
                json!({
                    "conversation_id": "g1", "actor": "bo", "type": "MessageSent",
                    "payload": {"body": format!("{number}"), "mentions": ["anna"]},
                })
            })
            .collect();
        scene.service().appends(&lines).await;
        let anna = scene.user("anna");
        let session = anna.session("g1").await;
        let newest: Vec<u64> = (31..=130).collect();
        check_part(
            &session,
            &json!({"unread_mentions": newest, "unread_mentions_count": 130, "unread": 130}),
        );
        anna.reads_to("g1", 60).await;
        let rest: Vec<u64> = (61..=130).collect();
        check_part(
            &anna.session("g1").await,
            &json!({"unread_mentions": rest, "unread_mentions_count": 70}),
        );
        anna.marks_unread("g1", 1).await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread_mentions": newest, "unread_mentions_count": 130}),
        );
    }
}

#[tokio::test]
async fn mentions_come_newest_first_across_conversations_in_pages() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        for conversation in ["g1", "g2", "g3"] {
            scene.group(conversation, &["anna", "bo"]).await;
        }
        let mut expected = Vec::new();
        for round in 1..=3 {
            for conversation in ["g1", "g2", "g3"] {
                // One waits for the other, so that their log times differ or their order is one's own.
                let path = format!("/conversations/{conversation}/messages?wait=20");
                let body = json!({"body": "anna", "mentions": ["anna"]});
                scene.user("bo").post(&path, body).await.is(201);
                expected.insert(0, (conversation.to_owned(), round));
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        }
        let anna = scene.user("anna");
        let mut paged = Vec::new();
        for mention in anna.all("/mentions?limit=2", "mentions").await {
            paged.push((
                mention["conversation_id"].as_str().unwrap().to_owned(),
                mention["seq"].as_u64().unwrap(),
            ));
        }
        assert_eq!(paged, expected);
    }
}
