use proptest::prelude::*;

use super::*;
use crate::{ConversationId, Seq, sample};

/// Checks how the error begins: what other crates say at its end is theirs.
#[track_caller]
fn refused(line: &str, expected: &str) {
    match parse_line(line) {
        Ok(event) => panic!("{line} was read as {event:?}"),
        Err(error) => {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            let text = format!("{error}{}", source.unwrap_or_default());
            assert!(text.starts_with(expected), "{line}: {text}");
        }
    }
}

/// A message's line with more fields in its payload, which begin with a comma.
fn message(more: &str) -> String {
    format!(
        r#"{{"conversation_id": "g1", "actor": "bo", "type": "MessageSent", "payload": {{"body": "hi"{more}}}}}"#
    )
}

#[test]
fn a_short_line_is_a_whole_event() {
    let event = parse_line(&message("")).unwrap();
    let sent = MessageSent {
        body: "hi".to_owned(),
        content_type: "text".to_owned(),
        mentions: vec![],
        mention_all: false,
        silent: false,
        reply_to: None,
    };
    let expected = Event {
        id: event.id,
        by_service: true,
        ..sample::event(Payload::MessageSent(sent))
    };
    assert_eq!(event, expected);
    assert_eq!(event.id.uuid().get_version_num(), 7);
}

#[test]
fn a_creation_has_defaults() {
    let line = r#"{"conversation_id": "g1", "actor": "bo", "type": "ConversationCreated",
                   "payload": {"kind": "group", "members": ["bo", "anna"]}}"#;
    let Payload::ConversationCreated(created) = parse_line(line).unwrap().payload else {
        panic!()
    };
    assert_eq!(
        (created.title.as_str(), created.history),
        ("", History::FromJoin)
    );
}

#[test]
fn a_full_line_is_taken_as_it_stands() {
    let line = r#"{"event_id": "00000000-0000-0000-0000-000000000001", "conversation_id": "g1", "actor": "bo",
        "by_service": false, "occurred_at": "2026-03-01T10:30:00.1234+01:00", "body_key": "k1",
        "type": "MessageEdited", "payload": {"seq": 7, "body": "hi", "mentions": []}}"#;
    let edited = MessageEdited {
        seq: Seq::new(7),
        body: "hi".to_owned(),
        mentions: Some(vec![]),
    };
    let expected = Event {
        occurred_at: Some(1_772_357_400_123),
        body_key: Some("k1".to_owned()),
        ..sample::event(Payload::MessageEdited(edited))
    };
    assert_eq!(parse_line(line).unwrap(), expected);
}

#[test]
fn null_is_the_same_as_absent() {
    let line = message(r#", "reply_to": null, "mentions": null, "content_type": null"#);
    let nulls = parse_line(&line).unwrap();
    let absent = parse_line(&message("")).unwrap();
    assert_eq!(nulls.payload, absent.payload);
}

#[test]
fn what_is_no_object_is_refused() {
    let no_object = "the line is not one JSON object with an object as its payload: ";
    refused("", &format!("{no_object}EOF while parsing a value"));
    refused(
        "3",
        &format!("{no_object}invalid type: integer `3`, expected an object"),
    );
    refused(
        r#"{"payload": "hi"}"#,
        &format!("{no_object}invalid type: string \"hi\", expected an object"),
    );
    refused("{} {}", &format!("{no_object}trailing characters"));
}

#[test]
fn a_missing_field_is_named() {
    refused("{}", "conversation_id is missing");
    refused(
        r#"{"conversation_id": "g1", "actor": "bo"}"#,
        "type is missing",
    );
    refused(
        r#"{"conversation_id": "g1", "actor": "bo", "type": "MessageSent"}"#,
        "payload is missing",
    );
    refused(
        r#"{"conversation_id": "g1", "actor": "bo", "type": "MessageSent", "payload": {}}"#,
        "payload.body is missing",
    );
}

#[test]
fn a_field_that_means_nothing_is_named() {
    refused(
        &message(r#", "bodyy": 1"#),
        "payload.bodyy is not a field of MessageSent",
    );
    refused(
        r#"{"conversation_id": "g1", "actor": "bo", "type": "HistoryCleared", "payload": {}, "at": 3}"#,
        "at is not a field of an event",
    );
    refused(
        r#"{"conversation_id": "g1", "actor": "bo", "type": "Sent", "payload": {}}"#,
        "type is \"Sent\", which is no type of event",
    );
}

#[test]
fn a_field_that_stands_twice_is_named() {
    let twice = "the line is not one JSON object with an object as its payload: ";
    refused(
        &message(r#", "body": "ho""#),
        &format!("{twice}body stands twice"),
    );
    refused(
        r#"{"actor": "a", "actor": "b"}"#,
        &format!("{twice}actor stands twice"),
    );
    refused(
        r#"{"payload": {}, "payload": {}}"#,
        &format!("{twice}duplicate field `payload`"),
    );
}

#[test]
fn a_value_that_cannot_be_is_named_with_the_reason() {
    refused(
        &message(r#", "silent": 3"#),
        "payload.silent: invalid type: integer `3`, expected a boolean",
    );
    refused(
        &message(r#", "mentions": ["anna", ""]"#),
        "payload.mentions[1]: a user id must not be empty",
    );
    refused(
        &message(r#", "reply_to": -1"#),
        "payload.reply_to: invalid value: integer `-1`, expected u64",
    );
    refused(
        r#"{"conversation_id": "g1", "actor": "bo", "occurred_at": "yesterday"}"#,
        r#"occurred_at: "yesterday" is not a time in RFC 3339, as in 2026-03-01T09:30:00Z"#,
    );
    refused(r#"{"event_id": "1"}"#, "event_id: UUID parsing failed");
}

#[test]
fn what_is_beyond_the_limits_is_refused() {
    refused(
        &message(r#", "reply_to": 9223372036854775808"#),
        "reply_to is 9223372036854775808, beyond the largest, 9223372036854775807",
    );
    refused(
        &message(r#", "content_type": """#),
        "content_type must not be empty",
    );
}

#[test]
fn a_time_that_cannot_be_written_is_left_out() {
    assert_eq!(rfc3339(0).unwrap(), "1970-01-01T00:00:00Z");
    assert_eq!(rfc3339(-1).unwrap(), "1969-12-31T23:59:59.999Z");
    assert_eq!(
        rfc3339(-62_167_219_200_000).unwrap(),
        "0000-01-01T00:00:00Z"
    );
    assert_eq!(rfc3339(-62_167_219_200_001), None);
    assert_eq!(rfc3339(i64::MAX), None);
    let event = Event {
        occurred_at: Some(i64::MAX),
        ..sample::event(Payload::HistoryCleared(HistoryCleared {}))
    };
    assert_eq!(to_json(&event).get("occurred_at"), None);
}

#[test]
fn a_line_says_what_is_there() {
    let event = Event {
        conversation: ConversationId::new("g1").unwrap(),
        ..sample::event(Payload::SessionChanged(SessionChanged {
            pinned: Some(true),
            muted: None,
            draft: None,
        }))
    };
    let expected = json!({
        "event_id": "00000000-0000-0000-0000-000000000001",
        "conversation_id": "g1",
        "actor": "bo",
        "by_service": false,
        "type": "SessionChanged",
        "payload": {"pinned": true},
    });
    assert_eq!(to_json(&event), expected);
}

proptest! {
    #[test]
    fn an_event_written_as_a_line_reads_back_the_same(event in sample::any_event()) {
        let occurred_at = event.occurred_at.filter(|millis| rfc3339(*millis).is_some());
        let event = Event { occurred_at, ..event };
        prop_assert_eq!(parse_line(&to_json(&event).to_string()).unwrap(), event);
    }

    #[test]
    fn any_text_is_an_event_or_an_error(text in "\\PC*") {
        let _ = parse_line(&text);
    }
}
