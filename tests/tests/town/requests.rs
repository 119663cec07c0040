//! Requests that are none, or ask for too much; and the pages that are no part of the interface.

use reqwest::Method;

use crate::{Size, Town, Value, json};

#[tokio::test]
async fn unknown_fields_and_parameters_are_named() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let anna = scene.user("anna");
    let path = "/conversations/g1";
    anna.put(
        "/conversations/g2",
        json!({"kind": "group", "members": ["anna"], "titel": "x"}),
    )
    .await
    .is_wrong_in("titel");
    anna.patch(path, json!({"kind": "direct"}))
        .await
        .is_wrong_in("kind");
    anna.post(
        &format!("{path}/messages"),
        json!({"body": "x", "text": "y"}),
    )
    .await
    .is_wrong_in("text");
    anna.post(&format!("{path}/messages"), json!({"body": 7}))
        .await
        .is_wrong_in("body");
    let to_nobody = r#"{"body": "x", "mentions": ["bo", ""]}"#;
    let messages = format!("{path}/messages");
    anna.raw(Method::POST, &messages, "application/json", to_nobody)
        .await
        .is_wrong_in("mentions[1]");
    anna.post(&format!("{path}/messages"), json!({}))
        .await
        .is_problem(400, "invalid_request");
    anna.says("g1", "one").await;
    let edit = anna
        .patch(
            &format!("{path}/messages/1"),
            json!({"body": "x", "mention_all": true}),
        )
        .await;
    edit.is_wrong_in("mention_all");
    anna.post(
        &format!("{path}/members"),
        json!({"add": ["x"], "kick": ["y"]}),
    )
    .await
    .is_wrong_in("kick");
    anna.patch(&format!("{path}/session"), json!({"mute": true}))
        .await
        .is_wrong_in("mute");
    anna.put(&format!("{path}/read"), json!({"seq": -1}))
        .await
        .is_wrong_in("seq");
    anna.get("/sessions?page=2").await.is_wrong_in("page");
    anna.get("/sessions?filter=all").await.is_wrong_in("filter");
    anna.get("/inbox").await.is_wrong_in("device");
    anna.delete(&format!("{path}/messages/1"))
        .await
        .is_wrong_in("for");
    anna.delete(&format!("{path}/messages/1?for=him"))
        .await
        .is_wrong_in("for");
    // Nothing of it came to anything.
    assert_eq!(anna.seqs("g1", "after=0").await, [1]);
}

#[tokio::test]
async fn limits_that_are_too_high_and_two_places_at_once_are_refused() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let anna = scene.user("anna");
    for path in [
        "/sessions?limit=201",
        "/inbox?device=x&limit=501",
        "/conversations/g1/messages?limit=201",
    ] {
        anna.get(path).await.is_wrong_in("limit");
        anna.get(&path.replace("201", "0").replace("501", "0"))
            .await
            .is_wrong_in("limit");
        anna.get(&path.replace("201", "200").replace("501", "500"))
            .await
            .is(200);
    }
    for two in ["before=1&after=2", "before=1&around=2", "after=1&around=2"] {
        anna.get(&format!("/conversations/g1/messages?{two}"))
            .await
            .is_problem(400, "invalid_request");
    }
    anna.get("/sessions?cursor=nonsense")
        .await
        .is_problem(400, "invalid_cursor");
    let long = "x".repeat((64 << 10) + 1);
    anna.post("/conversations/g1/messages", json!({"body": long}))
        .await
        .is_wrong_in("body");
    anna.patch("/conversations/g1", json!({"title": "x".repeat(1025)}))
        .await
        .is_wrong_in("title");
    anna.patch(
        "/conversations/g1/session",
        json!({"draft": "x".repeat(8193)}),
    )
    .await
    .is_wrong_in("draft");
    let many: Vec<String> = (0..1_001).map(|number| format!("u{number}")).collect();
    anna.post(
        "/conversations/g1/messages",
        json!({"body": "x", "mentions": many}),
    )
    .await
    .is_wrong_in("mentions");
    let long_name = "x".repeat(200);
    anna.put(
        &format!("/conversations/{long_name}"),
        json!({"kind": "group", "members": ["anna"]}),
    )
    .await
    .is_problem(400, "invalid_request");
}

#[tokio::test]
async fn what_is_no_request_is_told_so() {
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    let anna = scene.user("anna");
    let messages = "/conversations/g1/messages";
    let json_type = "application/json";
    for body in [
        "",
        "{",
        "[]",
        "null",
        "{\"body\": \"x\"} {}",
        "{\"body\": \"\u{0}",
        "{\"body\": \"x\", \"body\": \"y\"}",
    ] {
        anna.raw(Method::POST, messages, json_type, body)
            .await
            .is_problem(400, "invalid_request");
    }
    let html = anna
        .raw(Method::POST, messages, "text/html", "{\"body\": \"x\"}")
        .await;
    html.is_problem(415, "unsupported_media_type");
    let large = format!("{{\"body\": \"{}\"}}", "x".repeat(5 << 20));
    // By a connection of its own, which the gateway closes rather than read all of it.
    let other = town.scene(Size::AsIs);
    other
        .user("anna")
        .raw(Method::POST, messages, json_type, &large)
        .await
        .is_problem(413, "too_large");
    anna.get("/nothing/here").await.is_problem(404, "not_found");
    anna.get("//nothing").await.is_problem(404, "not_found");
    let refused = anna.put("/sessions", json!({})).await;
    let allowed = refused.header("allow").unwrap_or_default().to_owned();
    refused.is_problem(405, "method_not_allowed");
    assert!(
        allowed.contains("GET") && !allowed.contains("PUT"),
        "allowed: {allowed}"
    );
    let refused = anna
        .raw(
            Method::POST,
            messages,
            json_type,
            "{\"body\": \"still there\"}",
        )
        .await;
    refused.is(202);
}

#[tokio::test]
async fn the_pages_for_operators_are_there() {
    let town = Town::shared().await;
    for gateway in town.gateways() {
        for (path, part) in [
            ("/healthz", ""),
            ("/readyz", ""),
            ("/metrics", "# TYPE"),
            ("/openapi.json", "\"/v1/sessions\""),
            ("/", "<"),
        ] {
            let (status, text) = gateway.page(path).await.unwrap();
            assert!(
                status == 200 && text.contains(part),
                "{path}: {status} {text}"
            );
        }
        let (_, text) = gateway.page("/openapi.json").await.unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        for path in [
            "/v1/conversations/{conversation_id}",
            "/v1/events",
            "/v1/sync",
            "/v1/mentions",
            "/v1/inbox",
            "/v1/inbox/ack",
        ] {
            assert!(
                document["paths"][path].is_object(),
                "{path} is not described"
            );
        }
    }
}
