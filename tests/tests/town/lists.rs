//! The list of sessions: what is on it, in which order, in which pages, and what it adds up to.

use crate::{Size, Town, check, check_part, json};

/// D3.
#[tokio::test]
async fn a_conversation_without_messages_is_listed_among_the_others() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.groups(50, &["anna", "bo"]).await;
    let hi = |number| {
        json!({
            "conversation_id": format!("g{number}"), "actor": "bo", "type": "MessageSent", "payload": {"body": "hi"},
        })
    };
    let lines: Vec<_> = (0..50).filter(|number| *number != 20).map(hi).collect();
    scene.service().appends(&lines).await;
    let anna = scene.user("anna");
    assert_eq!(anna.sessions().await.len(), 50);
    let session = anna.session("g20").await;
    check_part(
        &session,
        &json!({"last_message": null, "last_seq": 0, "unread": 0}),
    );
    assert!(session["last_active_at"].is_string());
    assert_eq!(anna.total_unread().await, 49);
    let mut paged: Vec<_> = Vec::new();
    for session in anna.all("/sessions?limit=7", "sessions").await {
        paged.push(session["conversation_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(paged, anna.listed().await);
}

#[tokio::test]
async fn a_session_says_all_there_is_to_say() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene
            .group_with(
                "g1",
                &["anna", "bo"],
                json!({"title": "picnic", "history": "all"}),
            )
            .await;
        scene
            .user("bo")
            .sends("g1", json!({"body": "hi anna", "mentions": ["anna"]}))
            .await;
        scene
            .user("bo")
            .sends("g1", json!({"body": "all of you", "mention_all": true}))
            .await;
        let anna = scene.user("anna");
        anna.sets(
            "g1",
            json!({"pinned": true, "muted": true, "draft": "well …"}),
        )
        .await;
        let session = anna.session("g1").await;
        let last_message = json!({
            "seq": 2, "sender": "bo", "preview": "all of you", "content_type": "text", "recalled": false,
            "at": session["last_active_at"],
        });
        let expected = json!({
            "conversation_id": "g1", "kind": "group", "title": "picnic", "last_seq": 2, "last_message": last_message,
            "last_active_at": session["last_active_at"], "unread": 2, "unread_mentions": [1],
            "unread_mentions_count": 1, "mentioned_all": true, "mentioned_all_seq": 2, "read_seq": 0, "cleared_to": 0,
            "peer_read_seq": null, "marked_unread": false, "pinned": true, "muted": true, "draft": "well …",
            "members": scene.crowded(&["anna", "bo"]).len(), "left": false, "as_of": session["as_of"],
        });
        check(&session, &expected);
        assert!(session["as_of"].is_string() && session["last_active_at"].is_string());
        anna.sets("g1", json!({"draft": ""})).await;
        check_part(
            &anna.session("g1").await,
            &json!({"draft": "", "pinned": true, "muted": true}),
        );
        check_part(
            &scene.user("bo").session("g1").await,
            &json!({"draft": "", "pinned": false, "muted": false}),
        );
    }
}

#[tokio::test]
async fn pinned_ones_come_first_then_the_newest_activity() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        for conversation in ["g1", "g2", "g3", "g4"] {
            scene.group(conversation, &["anna", "bo"]).await;
        }
        for conversation in ["g3", "g1", "g4", "g2"] {
            scene.user("bo").says(conversation, "hi").await;
        }
        let anna = scene.user("anna");
        assert_eq!(anna.listed().await, ["g2", "g4", "g1", "g3"]);
        anna.sets("g1", json!({"pinned": true})).await;
        anna.sets("g3", json!({"pinned": true})).await;
        assert_eq!(anna.listed().await, ["g1", "g3", "g2", "g4"]);
        scene.user("bo").says("g4", "hi").await;
        scene.user("bo").says("g3", "hi").await;
        assert_eq!(anna.listed().await, ["g3", "g1", "g4", "g2"]);
        anna.sets("g3", json!({"pinned": false})).await;
        assert_eq!(anna.listed().await, ["g1", "g3", "g4", "g2"]);
        assert_eq!(scene.user("bo").listed().await, ["g3", "g4", "g2", "g1"]);
    }
}

/// D5, D8.
#[tokio::test]
async fn only_messages_move_a_conversation_and_only_the_last_ones_edit_shows() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        for conversation in ["g1", "g2"] {
            scene.group(conversation, &["anna", "bo"]).await;
            scene.user("bo").says(conversation, "one").await;
            scene.user("bo").says(conversation, "two").await;
        }
        let (anna, bo) = (scene.user("anna"), scene.user("bo"));
        let before = anna.session("g1").await["last_active_at"].clone();
        bo.changes("g1", json!({"title": "renamed"})).await;
        bo.adds("g1", &["cem"]).await;
        bo.removes("g1", &["cem"]).await;
        bo.edits("g1", 1, json!({"body": "one, better"})).await;
        anna.reads_to("g1", 1).await;
        anna.sets("g1", json!({"draft": "x"})).await;
        assert_eq!(anna.listed().await, ["g2", "g1"]);
        let session = anna.session("g1").await;
        check_part(
            &session,
            &json!({"title": "renamed", "last_active_at": before}),
        );
        assert_eq!(session["last_message"]["preview"], "two");
        bo.edits("g1", 2, json!({"body": "two, better"})).await;
        assert_eq!(anna.listed().await, ["g2", "g1"]);
        check_part(
            &anna.session("g1").await["last_message"],
            &json!({"preview": "two, better", "seq": 2}),
        );
        bo.recalls("g1", 2).await;
        check_part(
            &anna.session("g1").await["last_message"],
            &json!({"preview": null, "seq": 2, "recalled": true}),
        );
        assert_eq!(anna.listed().await, ["g2", "g1"]);
        // Hiding the last one shows none, rather than an older one.
        anna.hides("g1", 2).await;
        check_part(
            &anna.session("g1").await,
            &json!({"last_message": null, "last_active_at": before}),
        );
        check_part(&bo.session("g1").await["last_message"], &json!({"seq": 2}));
    }
}

/// B15.
#[tokio::test]
async fn a_session_taken_off_the_list_comes_back_with_the_next_message_of_any_kind() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 20).await;
        let (anna, bo) = (scene.user("anna"), scene.user("bo"));
        anna.sets(
            "g1",
            json!({"pinned": true, "muted": true, "draft": "kept"}),
        )
        .await;
        anna.takes_off_list("g1").await;
        assert!(anna.listed().await.is_empty());
        assert_eq!(anna.total_unread().await, 0);
        bo.changes("g1", json!({"title": "renamed"})).await;
        bo.recalls("g1", 20).await;
        anna.reads_to("g1", 20).await;
        assert!(anna.listed().await.is_empty());
        assert_eq!(
            anna.seqs("g1", "after=18").await,
            [19, 20],
            "its history stays"
        );
        bo.says("g1", "and on").await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 1, "read_seq": 20, "pinned": true, "muted": true, "draft": "kept", "title": "renamed"}),
        );
        anna.takes_off_list("g1").await;
        assert!(anna.listed().await.is_empty());
        bo.sends("g1", json!({"body": "psst", "silent": true}))
            .await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 0, "last_seq": 22}),
        );
        assert_eq!(bo.listed().await, ["g1"]);
    }
}

/// A15.
#[tokio::test]
async fn a_busy_group_hides_no_quiet_chat() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.direct("d1", ["anna", "cem"]).await;
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("cem").says("d1", "are you there?").await;
        scene.user("bo").says_many("g1", 1_100).await;
        let anna = scene.user("anna");
        check_part(&anna.session("g1").await, &json!({"unread": 1_100}));
        check_part(&anna.session("d1").await, &json!({"unread": 1}));
        assert_eq!(anna.total_unread().await, 1_101);
        assert_eq!(anna.pending("d1", "phone").await, [1]);
        assert_eq!(anna.pending("g1", "phone").await.len(), 1_100);
    }
}

#[tokio::test]
async fn filters_keep_the_order_and_leave_out_the_rest() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        for conversation in ["g1", "g2", "g3"] {
            scene.group(conversation, &["anna", "bo"]).await;
            scene.user("bo").says(conversation, "hi").await;
        }
        let anna = scene.user("anna");
        scene
            .user("bo")
            .sends("g1", json!({"body": "anna", "mentions": ["anna"]}))
            .await;
        anna.reads_to("g2", 1).await;
        let filtered = async |filter: &str| {
            let sessions = anna
                .all(&format!("/sessions?filter={filter}&limit=1"), "sessions")
                .await;
            let ids = sessions
                .iter()
                .map(|session| session["conversation_id"].as_str().unwrap().to_owned());
            ids.collect::<Vec<_>>()
        };
        assert_eq!(filtered("unread").await, ["g1", "g3"]);
        assert_eq!(filtered("mentions").await, ["g1"]);
        let page = anna.read("/sessions?filter=mentions").await.is(200);
        assert_eq!(page["total_unread"], 3, "a total is the whole list's");
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_its_list_and_its_owner() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    for conversation in ["g1", "g2", "g3"] {
        scene.group(conversation, &["anna", "bo"]).await;
    }
    let page = scene.user("anna").read("/sessions?limit=1").await.is(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    let path = format!("/sessions?limit=1&cursor={cursor}");
    scene
        .user("bo")
        .get(&path)
        .await
        .is_problem(400, "invalid_cursor");
    let other = format!("/mentions?cursor={cursor}");
    scene
        .user("anna")
        .get(&other)
        .await
        .is_problem(400, "invalid_cursor");
    scene.user("anna").get(&path).await.is(200);
}
