//! The bytes of every event, so that they cannot change by accident: what is in a log stays there for ever.
//!
//! Each pair is a line of JSON and the value that version 1 of the schema gives it. A later version adds pairs
//! of its own; these must go on being read.

use std::error::Error;

use tidemark_event::{EVENT_SCHEMAS, decode, encode, parse_line, to_json};

const VERSION_1: [(&str, &str); 15] = [
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "ConversationCreated", "payload": {"kind": "group", "members": ["anna", "bo"], "title": "Tea", "history": "all"}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f01000000020408616e6e6104626f000654656102",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "ConversationChanged", "payload": {"title": "Coffee", "history": "from_join"}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f01000002020c436f666665650200",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "MembersAdded", "payload": {"members": ["cy"]}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f010000040204637900",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "MembersRemoved", "payload": {"members": ["anna", "cy"]}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f010000060408616e6e6104637900",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "by_service": false, "occurred_at": "2026-03-01T09:30:00.123Z", "body_key": "k1", "type": "MessageSent", "payload": {"body": "Grüße 👋", "content_type": "text", "mentions": ["anna"], "mention_all": true, "silent": true, "reply_to": 900}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f0002f6d8dd8b956702046b3108184772c3bcc39f6520f09f918b08746578740208616e6e6100010102880e",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "MessageSent", "payload": {"body": "hi"}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f01000008046869087465787400000000",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "MessageEdited", "payload": {"seq": 7, "body": "hello", "mentions": []}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f0100000a0e0a68656c6c6f0200",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "MessageRecalled", "payload": {"seq": 7}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f0100000c0e",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "MessageHidden", "payload": {"seq": 7}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f0100000e0e",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "ReadAdvanced", "payload": {"seq": 9223372036854775807}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f01000010feffffffffffffffff01",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "MarkedUnread", "payload": {"from_seq": 1}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f0100001202",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "SessionChanged", "payload": {"pinned": true, "muted": false, "draft": "later"}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f0100001402010200020a6c61746572",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "HistoryCleared", "payload": {}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f01000016",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "SessionRemoved", "payload": {}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f01000018",
    ),
    (
        r#"{"event_id": "0192f3a0-7c1e-7abc-8def-0123456789ab", "conversation_id": "g1", "actor": "bo", "type": "InboxAcked", "payload": {"seq": 7, "device": "phone"}}"#,
        "c30105c3c93bc88e7833 0192f3a07c1e7abc8def0123456789ab 04673104626f0100001a0e0a70686f6e65",
    ),
];

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter_map(|digit| (digit as char).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_event_is_written_in_the_same_bytes_as_ever() -> Result<(), Box<dyn Error>> {
    for (line, hex) in VERSION_1 {
        assert_eq!(
            to_hex(&encode(&parse_line(line)?)?),
            hex.replace(' ', ""),
            "{line}"
        );
    }
    Ok(())
}

#[test]
fn every_event_ever_written_is_still_read() -> Result<(), Box<dyn Error>> {
    for (line, hex) in VERSION_1 {
        let event = parse_line(line)?;
        let key = event.conversation.as_str().as_bytes();
        assert_eq!(decode(Some(key), Some(&from_hex(hex)))?, event, "{line}");
    }
    Ok(())
}

/// A branch of the payload's union and the names of its fields.
type Branch = (String, Vec<String>);

fn branches(schema: &str) -> Result<Vec<Branch>, Box<dyn Error>> {
    let schema: serde_json::Value = serde_json::from_str(schema)?;
    let name = |of: &serde_json::Value| of["name"].as_str().unwrap_or_default().to_owned();
    let fields = |of: &serde_json::Value| of["fields"].as_array().cloned().unwrap_or_default();
    let payload = fields(&schema)
        .into_iter()
        .find(|field| name(field) == "payload")
        .ok_or("no payload")?;
    let branches = payload["type"].as_array().ok_or("payload is no union")?;
    Ok(branches
        .iter()
        .map(|branch| (name(branch), fields(branch).iter().map(name).collect()))
        .collect())
}

#[test]
fn every_branch_and_field_of_the_schema_has_its_bytes_here() -> Result<(), Box<dyn Error>> {
    let mut seen = Vec::new();
    for (line, _) in VERSION_1 {
        let line = to_json(&parse_line(line)?);
        let mut fields: Vec<String> = line["payload"]
            .as_object()
            .ok_or("no payload")?
            .keys()
            .cloned()
            .collect();
        fields.sort();
        seen.push((line["type"].as_str().ok_or("no type")?.to_owned(), fields));
    }
    for (name, mut fields) in branches(EVENT_SCHEMAS[0].text)? {
        fields.sort();
        assert!(
            seen.contains(&(name.clone(), fields)),
            "no line with all fields of {name}"
        );
    }
    Ok(())
}
