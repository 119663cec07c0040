//! Who belongs to a conversation, and what they may see of it: the rows F of the scenarios.

use crate::{Size, Town, Value, check, check_part, json};

/// F1.
#[tokio::test]
async fn who_joins_sees_and_counts_from_there() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 10).await;
        scene.user("bo").adds("g1", &["cem"]).await;
        let cem = scene.user("cem");
        check_part(
            &cem.session("g1").await,
            &json!({"unread": 0, "read_seq": 10, "last_message": null}),
        );
        scene.user("bo").says("g1", "welcome").await;
        assert_eq!(cem.seqs("g1", "after=0").await, [11]);
        assert_eq!(cem.pending("g1", "phone").await, [11]);
        check_part(
            &cem.session("g1").await,
            &json!({"unread": 1, "read_seq": 10}),
        );
        cem.marks_unread("g1", 3).await;
        check_part(
            &cem.session("g1").await,
            &json!({"unread": 1, "read_seq": 2}),
        );
    }
}

/// B24, F5.
#[tokio::test]
async fn the_gap_between_two_memberships_stays_hidden() {
    let town = Town::shared().await;
    for size in Size::ALL {
        for history in ["from_join", "all"] {
            let scene = town.scene(size);
            scene
                .group_with("g1", &["bo", "anna"], json!({"history": history}))
                .await;
            let (anna, bo) = (scene.user("anna"), scene.user("bo"));
            bo.says_many("g1", 20).await;
            bo.removes("g1", &["anna"]).await;
            bo.says_many("g1", 10).await;
            bo.edits("g1", 20, json!({"body": "edited since"})).await;
            check_part(
                &anna.session("g1").await,
                &json!({"left": true, "unread": 0, "unread_mentions": [], "last_seq": 20}),
            );
            bo.adds("g1", &["anna"]).await;
            check_part(
                &anna.session("g1").await,
                &json!({"left": false, "unread": 0, "read_seq": 30}),
            );
            bo.says_many("g1", 2).await;
            let own: Vec<u64> = (1..=20).chain([31, 32]).collect();
            assert_eq!(anna.seqs("g1", "after=0&limit=200").await, own);
            assert_eq!(
                anna.seqs("g1", "around=25&limit=4")
                    .await
                    .iter()
                    .filter(|seq| (21..31).contains(*seq))
                    .count(),
                0
            );
            assert_eq!(anna.pending("g1", "phone").await, own);
            check_part(
                &anna.session("g1").await,
                &json!({"unread": 2, "read_seq": 30}),
            );
            anna.marks_unread("g1", 5).await;
            check_part(
                &anna.session("g1").await,
                &json!({"unread": 2, "read_seq": 4}),
            );
            let edited = anna.history("g1", "around=20&limit=1").await;
            assert_eq!(edited[0]["body"], "edited since");
        }
    }
}

/// F6.
#[tokio::test]
async fn history_all_opens_what_was_before_and_a_later_switch_changes_nobodys_past() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene
            .group_with("g1", &["anna", "bo"], json!({"history": "all"}))
            .await;
        let bo = scene.user("bo");
        bo.says_many("g1", 3).await;
        bo.adds("g1", &["cem"]).await;
        bo.changes("g1", json!({"history": "from_join"})).await;
        bo.says("g1", "four").await;
        bo.adds("g1", &["dora"]).await;
        bo.changes("g1", json!({"history": "all"})).await;
        bo.says("g1", "five").await;
        assert_eq!(
            scene.user("cem").seqs("g1", "after=0").await,
            [1, 2, 3, 4, 5]
        );
        assert_eq!(scene.user("dora").seqs("g1", "after=0").await, [5]);
        // What was opened is there to be read, and counts for nothing; devices begin at the join.
        check_part(
            &scene.user("cem").session("g1").await,
            &json!({"unread": 2, "read_seq": 3}),
        );
        assert_eq!(scene.user("cem").pending("g1", "phone").await, [4, 5]);
    }
}

#[tokio::test]
async fn the_members_list_tells_since_when() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let bo = scene.user("bo");
    bo.says_many("g1", 3).await;
    bo.adds("g1", &["cem", "dora", "bo"]).await;
    bo.removes("g1", &["dora", "nobody"]).await;
    bo.says("g1", "four").await;
    bo.adds("g1", &["dora"]).await;
    let mut members = scene
        .user("anna")
        .all("/conversations/g1/members?limit=2", "members")
        .await;
    members.sort_by_key(|member| member["user_id"].as_str().map(str::to_owned));
    let expected = json!([
        {"user_id": "anna", "since": 1}, {"user_id": "bo", "since": 1}, {"user_id": "cem", "since": 4},
        {"user_id": "dora", "since": 5},
    ]);
    check(&Value::from(members), &expected);
    check_part(
        &scene.user("cem").session("g1").await,
        &json!({"members": 4}),
    );
}

#[tokio::test]
async fn one_call_may_add_more_than_an_event_holds() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let crowd: Vec<String> = (0..2_300).map(|number| format!("crowd-{number}")).collect();
    let answer = scene
        .user("anna")
        .post("/conversations/g1/members", json!({"add": crowd}))
        .await;
    let written = answer.is(202);
    assert!(written["position"].is_string(), "{written}");
    check_part(
        &scene.user("anna").session("g1").await,
        &json!({"members": 2_302}),
    );
    scene
        .user("bo")
        .sends("g1", json!({"body": "hello all", "mention_all": true}))
        .await;
    for name in ["crowd-0", "crowd-999", "crowd-1000", "crowd-2299"] {
        check_part(
            &scene.user(name).session("g1").await,
            &json!({"unread": 1, "mentioned_all_seq": 1}),
        );
        assert_eq!(scene.user(name).pending("g1", "phone").await, [1]);
    }
    assert_eq!(
        scene
            .user("anna")
            .all("/conversations/g1/members?limit=200", "members")
            .await
            .len(),
        2_302
    );
    let removed: Vec<String> = (0..1_500).map(|number| format!("crowd-{number}")).collect();
    scene
        .user("anna")
        .post("/conversations/g1/members", json!({"remove": removed}))
        .await
        .is(202);
    check_part(
        &scene.user("anna").session("g1").await,
        &json!({"members": 802}),
    );
    check_part(
        &scene.user("crowd-1499").session("g1").await,
        &json!({"left": true, "unread": 0}),
    );
}

#[tokio::test]
async fn a_group_may_begin_with_more_members_than_an_event_holds() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    let crowd: Vec<String> = (0..1_200)
        .map(|number| format!("crowd-{number}"))
        .chain(["zoe".to_owned()])
        .collect();
    let body = json!({"kind": "group", "members": crowd});
    for _ in 0..2 {
        scene.user("zoe").creates("g1", body.clone()).await;
        check_part(
            &scene.user("zoe").session("g1").await,
            &json!({"members": 1_201, "left": false}),
        );
    }
    scene.user("zoe").says("g1", "hello").await;
    for name in ["crowd-0", "crowd-1199"] {
        check_part(
            &scene.user(name).session("g1").await,
            &json!({"unread": 1, "members": 1_201}),
        );
    }
}

#[tokio::test]
async fn one_call_may_add_and_remove() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let body = json!({"add": ["cem"], "remove": ["bo"]});
    scene
        .user("anna")
        .post("/conversations/g1/members", body)
        .await
        .is(202);
    check_part(
        &scene.user("cem").session("g1").await,
        &json!({"left": false, "members": 2}),
    );
    check_part(
        &scene.user("bo").session("g1").await,
        &json!({"left": true}),
    );
}

#[tokio::test]
async fn who_left_sees_a_frozen_session() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene
            .group_with("g1", &["bo", "anna"], json!({"title": "before"}))
            .await;
        let (anna, bo) = (scene.user("anna"), scene.user("bo"));
        bo.sends("g1", json!({"body": "one", "mentions": ["anna"]}))
            .await;
        anna.sets("g1", json!({"pinned": true})).await;
        let members = anna.session("g1").await["members"].as_u64().unwrap();
        bo.removes("g1", &["anna"]).await;
        bo.changes("g1", json!({"title": "after"})).await;
        bo.says("g1", "two").await;
        bo.edits("g1", 1, json!({"body": "one, edited"})).await;
        let session = anna.session("g1").await;
        check_part(
            &session,
            &json!({
                "left": true, "unread": 0, "unread_mentions": [], "unread_mentions_count": 0, "title": "before",
                "last_seq": 1, "pinned": true, "members": members - 1,
            }),
        );
        check_part(
            &session["last_message"],
            &json!({"seq": 1, "preview": "one"}),
        );
        assert_eq!(anna.total_unread().await, 0);
        let history = anna.history("g1", "after=0").await;
        assert_eq!(history.len(), 1);
        assert_eq!(history[0]["body"], "one, edited");
    }
}

#[tokio::test]
async fn crossing_a_limit_changes_no_number() {
    let town = Town::shared().await;
    let limits = [town.settings().copy_limit, town.settings().fan_out_limit];
    for limit in limits {
        let scene = town.scene(Size::AsIs);
        let crowd: Vec<String> = (2..limit).map(|number| format!("crowd-{number}")).collect();
        let members: Vec<&str> = ["anna", "bo"]
            .into_iter()
            .chain(crowd.iter().map(String::as_str))
            .collect();
        scene.group("g1", &members).await;
        let (anna, bo) = (scene.user("anna"), scene.user("bo"));
        bo.says_many("g1", 5).await;
        bo.sends("g1", json!({"body": "anna", "mentions": ["anna"]}))
            .await;
        anna.reads_to("g1", 2).await;
        let numbers = json!({"unread": 4, "read_seq": 2, "unread_mentions": [6], "last_seq": 6});
        check_part(&anna.session("g1").await, &numbers);
        bo.adds("g1", &["dora"]).await;
        check_part(&anna.session("g1").await, &numbers);
        assert_eq!(anna.pending("g1", "phone").await, [1, 2, 3, 4, 5, 6]);
        bo.says("g1", "seven").await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 5, "last_seq": 7, "unread_mentions": [6]}),
        );
        check_part(
            &scene.user("dora").session("g1").await,
            &json!({"unread": 1, "read_seq": 6}),
        );
        assert_eq!(anna.pending("g1", "phone").await, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(scene.user("dora").pending("g1", "phone").await, [7]);
        bo.recalls("g1", 6).await;
        bo.removes("g1", &["dora"]).await;
        bo.says("g1", "eight").await;
        check_part(
            &anna.session("g1").await,
            &json!({"unread": 5, "last_seq": 8, "unread_mentions": []}),
        );
        assert_eq!(anna.pending("g1", "phone").await, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(anna.seqs("g1", "after=0").await, [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
