//! What a gateway does not let somebody do, and how it says so.

use crate::{Size, Town, json};

#[tokio::test]
async fn a_conversation_may_be_created_again_but_not_with_other_content() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    let anna = scene.user("anna");
    let whole =
        json!({"kind": "group", "members": ["anna", "bo"], "title": "picnic", "history": "all"});
    anna.creates("g1", whole.clone()).await;
    anna.creates("g1", whole.clone()).await;
    let reordered = json!({"kind": "group", "members": ["bo", "anna", "bo"], "title": "picnic", "history": "all"});
    scene.user("bo").creates("g1", reordered).await;
    // Until the gateway's view has it, another creation may be taken, for the folds to refuse.
    anna.history("g1", "limit=1").await;
    for (field, value) in [
        ("kind", json!("direct")),
        ("members", json!(["anna", "bo", "cem"])),
        ("title", json!("walk")),
        ("history", json!("from_join")),
    ] {
        let mut other = whole.clone();
        other[field] = value;
        anna.put("/conversations/g1", other)
            .await
            .is_problem(409, "exists_with_other_content");
    }
    // What it is compared with is the creation, whatever has changed since.
    anna.changes("g1", json!({"title": "walk"})).await;
    anna.creates("g1", whole).await;
    let session = anna.session("g1").await;
    assert_eq!(
        (&session["title"], &session["members"]),
        (&json!("walk"), &json!(2))
    );
}

#[tokio::test]
async fn a_conversation_begins_with_members_that_can_be() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    let anna = scene.user("anna");
    for body in [
        json!({"kind": "group", "members": ["bo", "cem"]}),
        json!({"kind": "group", "members": []}),
        json!({"kind": "direct", "members": ["anna"]}),
        json!({"kind": "direct", "members": ["anna", "anna"]}),
        json!({"kind": "direct", "members": ["anna", "bo", "cem"]}),
    ] {
        anna.put("/conversations/g1", body)
            .await
            .is_problem(400, "bad_members");
    }
    anna.read("/conversations/g1/messages")
        .await
        .is_problem(404, "no_such_conversation");
}

#[tokio::test]
async fn a_stranger_is_refused_everything() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says("g1", "hi").await;
        everything_is_refused(&scene, "eve", "g1", 403, "not_a_member").await;
        let eve = scene.user("eve");
        eve.read("/conversations/g1/messages")
            .await
            .is_problem(403, "not_a_member");
        eve.read("/conversations/g1/members")
            .await
            .is_problem(403, "not_a_member");
        assert_eq!(eve.listed().await, [] as [&str; 0]);
    }
}

#[tokio::test]
async fn an_unknown_conversation_is_not_found() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    everything_is_refused(&scene, "anna", "g1", 404, "no_such_conversation").await;
    let anna = scene.user("anna");
    anna.get("/conversations/g1/messages")
        .await
        .is_problem(404, "no_such_conversation");
    anna.get("/conversations/g1/members")
        .await
        .is_problem(404, "no_such_conversation");
}

#[tokio::test]
async fn who_left_may_read_up_to_there_and_write_nothing() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 3).await;
        scene.user("anna").leaves("g1").await;
        scene.user("bo").says("g1", "she is gone").await;
        assert_eq!(scene.user("anna").seqs("g1", "after=0").await, [1, 2, 3]);
        everything_is_refused(&scene, "anna", "g1", 403, "not_a_member").await;
    }
}

async fn everything_is_refused(
    scene: &tidemark_e2e::Scene<'_>,
    name: &str,
    conversation: &str,
    status: u16,
    kind: &str,
) {
    let user = scene.user(name);
    let path = format!("/conversations/{conversation}");
    user.post(&format!("{path}/messages"), json!({"body": "x"}))
        .await
        .is_problem(status, kind);
    user.patch(&path, json!({"title": "x"}))
        .await
        .is_problem(status, kind);
    user.post(&format!("{path}/members"), json!({"add": ["x"]}))
        .await
        .is_problem(status, kind);
    user.post(&format!("{path}/members"), json!({"remove": ["bo"]}))
        .await
        .is_problem(status, kind);
    user.patch(&format!("{path}/messages/1"), json!({"body": "x"}))
        .await
        .is_problem(status, kind);
    user.delete(&format!("{path}/messages/1?for=everyone"))
        .await
        .is_problem(status, kind);
    user.delete(&format!("{path}/messages/1?for=me"))
        .await
        .is_problem(status, kind);
    user.put(&format!("{path}/read"), json!({"seq": 1}))
        .await
        .is_problem(status, kind);
    user.put(&format!("{path}/unread"), json!({"from_seq": 1}))
        .await
        .is_problem(status, kind);
    user.patch(&format!("{path}/session"), json!({"muted": true}))
        .await
        .is_problem(status, kind);
    user.delete(&format!("{path}/history"))
        .await
        .is_problem(status, kind);
    user.delete(&format!("/sessions/{conversation}"))
        .await
        .is_problem(status, kind);
    let ack = json!({"conversation": conversation, "seq": 1, "device": "phone"});
    user.put("/inbox/ack", ack).await.is_problem(status, kind);
}

#[tokio::test]
async fn an_edit_is_the_senders_and_a_recall_the_senders_or_a_services() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    scene.user("bo").says("g1", "one").await;
    scene.user("bo").says("g1", "two").await;
    let anna = scene.user("anna");
    let path = "/conversations/g1/messages";
    anna.patch(&format!("{path}/1"), json!({"body": "x"}))
        .await
        .is_problem(403, "not_allowed");
    anna.delete(&format!("{path}/1?for=everyone"))
        .await
        .is_problem(403, "not_allowed");
    let as_anna = scene.service();
    let edit = as_anna
        .patch(&format!("{path}/1?actor=anna"), json!({"body": "x"}))
        .await;
    edit.is_problem(403, "not_allowed");
    as_anna
        .delete(&format!("{path}/1?for=everyone&actor=anna"))
        .await
        .is(202);
    as_anna
        .patch(&format!("{path}/2?actor=bo"), json!({"body": "as bo"}))
        .await
        .is(202);
    let history = anna.history("g1", "after=0").await;
    assert_eq!(
        (&history[0]["body"], &history[1]["body"]),
        (&json!(null), &json!("as bo"))
    );
}

#[tokio::test]
async fn a_seq_must_be_a_messages() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        let bo = scene.user("bo");
        bo.says("g1", "one").await;
        let path = "/conversations/g1/messages";
        for seq in ["0", "2", "99", "9223372036854775807"] {
            let one = format!("{path}/{seq}");
            bo.patch(&one, json!({"body": "x"}))
                .await
                .is_problem(404, "no_such_seq");
            bo.delete(&format!("{one}?for=everyone"))
                .await
                .is_problem(404, "no_such_seq");
            bo.delete(&format!("{one}?for=me"))
                .await
                .is_problem(404, "no_such_seq");
        }
        bo.post(path, json!({"body": "x", "reply_to": 2}))
            .await
            .is_problem(404, "no_such_seq");
        bo.post(path, json!({"body": "x", "reply_to": 0}))
            .await
            .is_problem(404, "no_such_seq");
        for seq in ["-1", "x", "1.5", "9223372036854775808"] {
            bo.patch(&format!("{path}/{seq}"), json!({"body": "x"}))
                .await
                .is_problem(400, "invalid_request");
        }
        // Reading and acknowledging go no further than the last.
        scene.user("anna").reads_to("g1", 99).await;
        scene.user("anna").acks("g1", 99, "phone").await;
        bo.says("g1", "two").await;
        assert_eq!(scene.user("anna").session("g1").await["read_seq"], 1);
        assert_eq!(scene.user("anna").pending("g1", "phone").await, [2]);
    }
}

#[tokio::test]
async fn nobody_joins_or_leaves_a_direct_chat() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.direct("d1", ["anna", "bo"]).await;
    let path = "/conversations/d1/members";
    let anna = scene.user("anna");
    anna.post(path, json!({"add": ["cem"]}))
        .await
        .is_problem(403, "direct_is_fixed");
    anna.post(path, json!({"remove": ["bo"]}))
        .await
        .is_problem(403, "direct_is_fixed");
    let by_service = scene.service().post(path, json!({"remove": ["bo"]})).await;
    by_service.is_problem(403, "direct_is_fixed");
}

#[tokio::test]
async fn a_call_says_who_makes_it_and_only_services_act_for_others() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let path = "/conversations/g1/messages";
    scene
        .nobody()
        .get("/sessions")
        .await
        .is_problem(401, "no_caller");
    scene
        .nobody()
        .post(path, json!({"body": "x"}))
        .await
        .is_problem(401, "no_caller");
    let posing = scene
        .user("anna")
        .post(&format!("{path}?actor=bo"), json!({"body": "x"}))
        .await;
    posing.is_problem(403, "service_only");
    scene
        .user("anna")
        .get("/sessions?actor=bo")
        .await
        .is_problem(403, "service_only");

    let desk = scene.service();
    desk.post(&format!("{path}?actor=bo"), json!({"body": "as bo"}))
        .await
        .is(202);
    desk.post(path, json!({"body": "as itself"})).await.is(202);
    desk.post(path, json!({"body": "noted", "content_type": "system"}))
        .await
        .is(202);
    let by_a_user = json!({"body": "noted", "content_type": "system"});
    scene
        .user("bo")
        .post(path, by_a_user)
        .await
        .is_problem(403, "not_allowed");
    // A service needs no membership to write, and is judged as the user it reads as.
    let read = desk
        .read(&format!("{path}?after=0&actor=anna"))
        .await
        .is(200);
    let senders: Vec<_> = read["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["sender"].clone())
        .collect();
    assert_eq!(senders, ["bo", "desk", "desk"]);
    desk.read(&format!("{path}?actor=eve"))
        .await
        .is_problem(403, "not_a_member");
    let own_state = desk
        .put("/conversations/g1/read?actor=eve", json!({"seq": 1}))
        .await;
    own_state.is_problem(403, "not_a_member");
    // System messages count for nobody.
    assert_eq!(scene.user("anna").session("g1").await["unread"], 2);
}
