//! What counts as unread: the rows B, and some of E and F, of the scenarios, in groups of every size.

use crate::{Size, Town, check_part, json};

/// B1.
#[tokio::test]
async fn own_messages_never_count_and_sending_reads_up_to_there() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("anna").says_many("g1", 5).await;
        check_part(
            &scene.user("anna").session("g1").await,
            &json!({"unread": 0, "read_seq": 5}),
        );
        check_part(
            &scene.user("bo").session("g1").await,
            &json!({"unread": 5, "read_seq": 0}),
        );
        scene.user("bo").says("g1", "six").await;
        check_part(
            &scene.user("anna").session("g1").await,
            &json!({"unread": 1, "read_seq": 5}),
        );
        check_part(
            &scene.user("bo").session("g1").await,
            &json!({"unread": 0, "read_seq": 6}),
        );
        scene
            .user("anna")
            .sends("g1", json!({"body": "psst", "silent": true}))
            .await;
        check_part(
            &scene.user("anna").session("g1").await,
            &json!({"unread": 0, "read_seq": 7}),
        );
        check_part(
            &scene.user("bo").session("g1").await,
            &json!({"unread": 0, "read_seq": 6}),
        );
    }
}

/// B4, D10.
#[tokio::test]
async fn unread_is_exact_whatever_a_page_holds() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 1_100).await;
        let anna = scene.user("anna");
        let page = anna.read("/sessions?limit=1").await.is(200);
        check_part(
            &page["sessions"][0],
            &json!({"unread": 1_100, "last_seq": 1_100}),
        );
        check_part(
            &page["sessions"][0]["last_message"],
            &json!({"seq": 1_100, "preview": "1100 by bo"}),
        );
        assert_eq!(page["total_unread"], 1_100);
        anna.reads_to("g1", 1_063).await;
        check_part(&anna.session("g1").await, &json!({"unread": 37}));
    }
}

/// B5.
#[tokio::test]
async fn recalled_and_hidden_messages_no_longer_count() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo", "cem"]).await;
        scene.user("bo").says_many("g1", 3).await;
        scene.user("bo").recalls("g1", 1).await;
        scene.user("anna").hides("g1", 2).await;
        check_part(
            &scene.user("anna").session("g1").await,
            &json!({"unread": 1}),
        );
        check_part(
            &scene.user("cem").session("g1").await,
            &json!({"unread": 2}),
        );
        scene.user("bo").recalls("g1", 3).await;
        check_part(
            &scene.user("anna").session("g1").await,
            &json!({"unread": 0, "last_seq": 3}),
        );
        check_part(
            &scene.user("cem").session("g1").await,
            &json!({"unread": 1}),
        );
    }
}

/// B7.
#[tokio::test]
async fn membership_changes_silent_and_system_messages_do_not_count() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        let bo = scene.user("bo");
        bo.says("g1", "one").await;
        bo.adds("g1", &["cem"]).await;
        bo.says("g1", "two").await;
        bo.removes("g1", &["cem"]).await;
        bo.adds("g1", &["cem"]).await;
        bo.sends("g1", json!({"body": "psst", "silent": true}))
            .await;
        let noted = json!({"body": "noted", "content_type": "system"});
        scene.service().sends("g1", noted).await;
        check_part(
            &scene.user("anna").session("g1").await,
            &json!({"unread": 2, "last_seq": 4}),
        );
        check_part(
            &scene.user("cem").session("g1").await,
            &json!({"unread": 0}),
        );
    }
}

/// B9.
#[tokio::test]
async fn a_message_recalled_twice_or_once_read_leaves_the_count_once() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 3).await;
        let (anna, bo) = (scene.user("anna"), scene.user("bo"));
        bo.recalls("g1", 2).await;
        check_part(&anna.session("g1").await, &json!({"unread": 2}));
        bo.recalls("g1", 2).await;
        check_part(&anna.session("g1").await, &json!({"unread": 2}));
        anna.reads_to("g1", 3).await;
        check_part(&anna.session("g1").await, &json!({"unread": 0}));
        bo.recalls("g1", 1).await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 0, "read_seq": 3}),
        );
    }
}

/// B2, B17: nothing is kept in anybody's memory that would matter.
#[tokio::test]
async fn a_read_position_is_what_was_read_and_never_moves_back() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 5).await;
        let anna = scene.user("anna");
        anna.reads_to("g1", 5).await;
        anna.reads_to("g1", 2).await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 0, "read_seq": 5}),
        );
        scene.user("bo").says_many("g1", 2).await;
        let session = anna.session("g1").await;
        check_part(&session, &json!({"unread": 2, "read_seq": 5}));
        check_part(
            &session["last_message"],
            &json!({"seq": 7, "preview": "2 by bo", "sender": "bo"}),
        );
    }
}

/// B18.
#[tokio::test]
async fn muting_changes_the_total_and_nothing_else() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        for (conversation, unread) in [("g1", 4), ("g2", 6)] {
            scene.group(conversation, &["anna", "bo"]).await;
            scene.user("bo").says_many(conversation, unread).await;
        }
        let anna = scene.user("anna");
        assert_eq!(anna.total_unread().await, 10);
        anna.sets("g1", json!({"muted": true})).await;
        assert_eq!(anna.total_unread().await, 6);
        check_part(
            &anna.session("g1").await,
            &json!({"muted": true, "unread": 4}),
        );
        scene.user("bo").says("g1", "more").await;
        assert_eq!(anna.total_unread().await, 6);
        anna.reads_to("g1", 5).await;
        assert_eq!(anna.total_unread().await, 6);
        anna.sets("g1", json!({"muted": false})).await;
        assert_eq!(anna.total_unread().await, 6);
        scene.user("bo").says("g1", "again").await;
        assert_eq!(anna.total_unread().await, 7);
    }
}

/// B25.
#[tokio::test]
async fn each_side_of_a_direct_chat_sees_how_far_the_other_has_ever_read() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.direct("d1", ["anna", "bo"]).await;
    scene.user("bo").says_many("d1", 4).await;
    scene.user("anna").says_many("d1", 6).await;
    let (anna, bo) = (scene.user("anna"), scene.user("bo"));
    bo.reads_to("d1", 9).await;
    check_part(
        &anna.session("d1").await,
        &json!({"unread": 0, "read_seq": 10, "peer_read_seq": 9}),
    );
    check_part(
        &bo.session("d1").await,
        &json!({"unread": 1, "read_seq": 9, "peer_read_seq": 10}),
    );
    bo.marks_unread("d1", 5).await;
    check_part(
        &bo.session("d1").await,
        &json!({"unread": 6, "read_seq": 4, "peer_read_seq": 10}),
    );
    check_part(&anna.session("d1").await, &json!({"peer_read_seq": 9}));
    scene.group("g1", &["anna", "bo"]).await;
    check_part(
        &anna.session("g1").await,
        &json!({"peer_read_seq": null, "kind": "group"}),
    );
}

#[tokio::test]
async fn what_is_marked_unread_counts_again_until_read_to_the_end() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 5).await;
        scene
            .user("bo")
            .sends("g1", json!({"body": "anna!", "mentions": ["anna"]}))
            .await;
        let anna = scene.user("anna");
        anna.reads_to("g1", 6).await;
        let state = async || anna.session("g1").await;
        check_part(
            &state().await,
            &json!({"unread": 0, "marked_unread": false, "unread_mentions": []}),
        );
        anna.marks_unread("g1", 4).await;
        check_part(
            &state().await,
            &json!({"unread": 3, "read_seq": 3, "marked_unread": true, "unread_mentions": [6]}),
        );
        // From above the read position it changes nothing.
        anna.marks_unread("g1", 5).await;
        check_part(
            &state().await,
            &json!({"unread": 3, "read_seq": 3, "marked_unread": true}),
        );
        anna.reads_to("g1", 5).await;
        check_part(
            &state().await,
            &json!({"unread": 1, "read_seq": 5, "marked_unread": true}),
        );
        anna.reads_to("g1", 6).await;
        check_part(
            &state().await,
            &json!({"unread": 0, "marked_unread": false}),
        );
        anna.marks_unread("g1", 1).await;
        check_part(
            &state().await,
            &json!({"unread": 6, "read_seq": 0, "marked_unread": true}),
        );
        anna.says("g1", "seen").await;
        check_part(
            &state().await,
            &json!({"unread": 0, "read_seq": 7, "marked_unread": false}),
        );
        let from_zero = anna
            .put("/conversations/g1/unread", json!({"from_seq": 0}))
            .await;
        assert!(matches!(from_zero.status, 400 | 404), "{from_zero:?}");
    }
}

/// F8.
#[tokio::test]
async fn a_late_read_after_a_clear_brings_nothing_back() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 5).await;
        let anna = scene.user("anna");
        anna.clears("g1").await;
        anna.reads_to("g1", 3).await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 0, "read_seq": 5, "cleared_to": 5}),
        );
        anna.marks_unread("g1", 2).await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 0, "read_seq": 1, "marked_unread": true}),
        );
        assert_eq!(anna.seqs("g1", "after=0").await, [] as [u64; 0]);
        assert_eq!(anna.total_unread().await, 0);
    }
}
