//! Records that are no events, and events that are refused: dead letters, each origin once in each view.

use tidemark_e2e::{
    audit::{Expected, audit, audit_dead_letters},
    load::Load,
};

use crate::{Size, Town, Value, View, check_part, json, kafka};

/// P8, P10.
#[tokio::test]
async fn what_is_no_event_is_set_aside_and_the_rest_goes_on() {
    let town = Town::in_turn().await;
    let scene = town.scene(Size::AsIs);
    let g1 = scene.name_in_partition("g", 0);
    scene.group(&g1, &["anna", "bo"]).await;
    let key = scene.on_wire(&g1).into_bytes();
    let event = scene.message_bytes(&g1, "bo", "never seen");
    let mut cut_off = event.clone();
    cut_off.truncate(event.len() - 3);
    let mut too_long = event.clone();
    too_long.extend_from_slice(b"...");
    let mut garbage = Vec::new();
    let mut add = async |key: Option<&[u8]>, value: Option<&[u8]>| {
        garbage.push((
            kafka::append(0, key, value).await,
            key.map(<[u8]>::to_vec),
            value.map(<[u8]>::to_vec),
        ));
        scene.user("bo").says(&g1, "between").await;
    };
    add(None, None).await;
    add(Some(&key), None).await;
    add(Some(&key), Some(b"")).await;
    add(Some(&key), Some(b"{\"body\": \"I am JSON\"}")).await;
    add(Some(&key), Some(&cut_off)).await;
    add(Some(&key), Some(&too_long)).await;
    add(Some(b"another"), Some(&event)).await;
    add(None, Some(&event)).await;
    // The poison is the last record of another partition.
    garbage.push((
        kafka::append(3, Some(b"\xff\xfe"), Some(b"\xc3\x01")).await,
        Some(b"\xff\xfe".to_vec()),
        Some(b"\xc3\x01".to_vec()),
    ));

    check_part(
        &scene.user("anna").session(&g1).await,
        &json!({"unread": 8, "last_seq": 8}),
    );
    for view in View::ALL {
        town.caught_up(view).await;
        let letters = kafka::dead_letters(view).await;
        let undecodable = letters
            .iter()
            .filter(|(_, letter)| letter.headers["tidemark-reason"] == "undecodable");
        let places: Vec<kafka::Place> = undecodable.map(|(place, _)| *place).collect();
        let mut expected: Vec<kafka::Place> = garbage.iter().map(|(place, ..)| *place).collect();
        expected.sort_unstable();
        assert_eq!(places, expected, "{}", view.name());
        for (place, key, value) in &garbage {
            let letter = &letters[place];
            assert_eq!(
                (&letter.key, &letter.value),
                (key, value),
                "the record as it was"
            );
            assert!(!letter.headers["tidemark-detail"].is_empty());
        }
    }
}

#[tokio::test]
async fn refused_events_are_set_aside_with_the_reason() {
    let town = Town::in_turn().await;
    let scene = town.scene(Size::AsIs);
    scene.group("g1", &["anna", "bo"]).await;
    scene.direct("d1", ["anna", "bo"]).await;
    let event = |conversation: &str, actor: &str, kind: &str, payload: Value| json!({"conversation_id": conversation, "actor": actor, "by_service": false, "type": kind, "payload": payload});
    let group = json!({"kind": "group", "members": ["anna", "cem"]});
    let lines = [
        (
            "no_such_conversation",
            event("g0", "anna", "MessageSent", json!({"body": "x"})),
        ),
        (
            "exists_with_other_content",
            event("g1", "anna", "ConversationCreated", group.clone()),
        ),
        (
            "bad_members",
            event("g2", "eve", "ConversationCreated", group),
        ),
        (
            "direct_is_fixed",
            event("d1", "anna", "MembersAdded", json!({"members": ["cem"]})),
        ),
        (
            "not_a_member",
            event("g1", "eve", "MessageSent", json!({"body": "x"})),
        ),
        (
            "no_such_seq",
            event("g1", "anna", "MessageRecalled", json!({"seq": 1})),
        ),
        (
            "not_allowed",
            event(
                "g1",
                "anna",
                "MessageSent",
                json!({"body": "x", "content_type": "system"}),
            ),
        ),
    ];
    let answers = scene
        .service()
        .appends(&lines.clone().map(|(_, line)| line))
        .await;
    let expected = Expected::of(&scene).await;
    let mut reasons: Vec<&str> = lines.iter().map(|(reason, _)| *reason).collect();
    let mut refused: Vec<String> = expected.refusals().into_values().collect();
    reasons.sort_unstable();
    refused.sort_unstable();
    assert_eq!(refused, reasons, "what the model says");
    audit_dead_letters(&scene, &expected).await;

    // Who sent them can ask.
    let id = answers[4]["event_id"].as_str().unwrap();
    let asked = scene
        .user("anna")
        .read(&format!("/conversations/g1/messages?event_id={id}"))
        .await;
    asked.is_problem(403, "not_a_member");
}

#[tokio::test]
async fn people_breaking_every_rule_leave_equal_views_and_equal_dead_letters() {
    let town = Town::in_turn().await;
    let scene = town.scene(Size::AsIs);
    let load = Load::of(11, 600);
    load.append(&scene, 0..600).await;
    audit(&scene, &load.cast()).await;
    town.audited().await;
}
