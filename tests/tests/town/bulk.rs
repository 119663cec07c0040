//! Many events at once, from services.

use reqwest::Method;
use uuid::Uuid;

use crate::{Size, Town, Value, check, json, until};

fn sent(conversation: &str, actor: &str, body: &str) -> Value {
    json!({"conversation_id": conversation, "actor": actor, "type": "MessageSent", "payload": {"body": body}})
}

#[tokio::test]
async fn lines_are_appended_in_order_and_answered_one_by_one() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    let id = Uuid::now_v7();
    let mut with_id = sent("g1", "bo", "two");
    with_id["event_id"] = json!(id);
    let lines = [
        json!({
            "conversation_id": "g1", "actor": "anna", "type": "ConversationCreated",
            "payload": {"kind": "group", "members": ["anna", "bo"]},
        }),
        sent("g1", "bo", "one"),
        with_id,
        json!({"conversation_id": "g1", "actor": "anna", "type": "ReadAdvanced", "payload": {"seq": 1}}),
        sent("g1", "bo", "three"),
    ];
    let answers = scene.service().appends(&lines).await;
    for answer in &answers {
        assert!(
            answer["event_id"].is_string() && answer["position"].is_string(),
            "{answer}"
        );
    }
    assert_eq!(answers[2]["event_id"], json!(id));
    let history = scene.user("anna").history("g1", "after=0").await;
    let bodies: Vec<&Value> = history.iter().map(|message| &message["body"]).collect();
    assert_eq!(bodies, ["one", "two", "three"]);
    let session = scene.user("anna").session("g1").await;
    assert_eq!(
        (&session["read_seq"], &session["unread"]),
        (&json!(1), &json!(2))
    );
}

#[tokio::test]
async fn a_line_that_cannot_be_is_a_problem_among_the_others() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let good = |body| scene_line(&scene, &sent("g1", "bo", body));
    let lines = [
        good("one"),
        "{".to_owned(),
        scene_line(
            &scene,
            &json!({"conversation_id": "g1", "actor": "bo", "type": "Nonsense", "payload": {}}),
        ),
        scene_line(
            &scene,
            &json!({"conversation_id": "g1", "actor": "bo", "type": "MessageSent", "payload": {"body": "x", "colour": 1}}),
        ),
        scene_line(
            &scene,
            &json!({"conversation_id": "g1", "type": "MessageSent", "payload": {"body": "x"}}),
        ),
        good("two"),
        scene_line(&scene, &sent("g1", "bo", &"x".repeat((64 << 10) + 1))),
        good("three"),
    ];
    let answer = scene
        .service()
        .raw(
            Method::POST,
            "/events",
            "application/x-ndjson",
            &lines.join("\n"),
        )
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let answers: Vec<Value> = match serde_json::from_str(&answer.text) {
        Ok(Value::Array(answers)) => answers,
        _ => answer
            .text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    };
    let done: Vec<bool> = answers
        .iter()
        .map(|answer| answer["position"].is_string())
        .collect();
    assert_eq!(
        done,
        [true, false, false, false, false, true, false, true],
        "{answers:#?}"
    );
    for problem in answers.iter().filter(|answer| answer["position"].is_null()) {
        assert_eq!(problem["status"], 400, "{problem}");
        assert!(
            problem["type"].is_string() && problem["detail"].is_string(),
            "{problem}"
        );
    }
    scene.wrote("g1", answers[7]["position"].as_str().unwrap());
    assert_eq!(scene.user("anna").seqs("g1", "after=0").await, [1, 2, 3]);
}

fn scene_line(scene: &tidemark_e2e::Scene<'_>, line: &Value) -> String {
    let mut line = line.clone();
    for field in ["conversation_id", "actor"] {
        if let Some(name) = line[field].as_str() {
            line[field] = json!(scene.on_wire(name));
        }
    }
    line.to_string()
}

#[tokio::test]
async fn only_a_service_appends_in_bulk() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    let line = sent("g1", "anna", "x").to_string();
    let answer = scene
        .user("anna")
        .raw(Method::POST, "/events", "application/x-ndjson", &line)
        .await;
    answer.is_problem(403, "service_only");
}

#[tokio::test]
async fn a_bulk_append_that_is_repeated_changes_nothing() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let lines: Vec<Value> = (1..=300)
        .map(|number| {
            let mut line = sent("g1", "bo", &number.to_string());
            line["event_id"] = json!(Uuid::now_v7());
            line
        })
        .collect();
    for _ in 0..3 {
        scene.service().appends(&lines).await;
    }
    let anna = scene.user("anna");
    assert_eq!(anna.session("g1").await["unread"], 300);
    let all = anna
        .all("/conversations/g1/messages?after=0&limit=200", "messages")
        .await;
    let bodies: Value = all.iter().map(|message| message["body"].clone()).collect();
    check(
        &bodies,
        &(1..=300).map(|number| json!(number.to_string())).collect(),
    );
}

#[tokio::test]
async fn what_a_fold_refuses_the_sender_is_told_by_the_event_id() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    // A producer that is no service, whose events nobody judges before the fold.
    let id = Uuid::now_v7();
    let mut outsiders = sent("g1", "eve", "let me in");
    outsiders["event_id"] = json!(id);
    outsiders["by_service"] = json!(false);
    let answers = scene.service().appends(&[outsiders.clone()]).await;
    if answers[0]["position"].is_null() {
        // The gateway may have judged it itself.
        assert_eq!(answers[0]["status"], 403, "{}", answers[0]);
        return;
    }
    let path = format!("/conversations/g1/messages?event_id={id}");
    until("the refusal told", tidemark_e2e::PATIENCE, async || {
        let answer = scene.service().read(&format!("{path}&actor=anna")).await;
        if answer.status == 403 {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
    // It is judged anew once it is let in.
    scene.user("anna").adds("g1", &["eve"]).await;
    scene.service().appends(&[outsiders]).await;
    let found = scene
        .user("eve")
        .history("g1", &format!("event_id={id}"))
        .await;
    assert_eq!(found[0]["seq"], 1);
}

#[tokio::test]
async fn five_hundred_messages_in_one_batch_are_five_hundred_rows() {
    let town = Town::shared().await;
    for size in Size::ALL {
        let scene = town.scene(size);
        scene.group("g1", &["anna", "bo"]).await;
        scene.user("bo").says_many("g1", 500).await;
        let anna = scene.user("anna");
        let session = anna.session("g1").await;
        assert_eq!(
            (&session["unread"], &session["last_seq"]),
            (&json!(500), &json!(500))
        );
        assert_eq!(scene.user("bo").session("g1").await["unread"], 0);
        assert_eq!(
            anna.pending("g1", "phone").await,
            (1..=500).collect::<Vec<_>>()
        );
        assert_eq!(
            anna.all("/conversations/g1/messages?after=0&limit=200", "messages")
                .await
                .len(),
            500
        );
    }
}
