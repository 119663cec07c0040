//! Small logs, made up, and the events they become.

use serde_json::json;
use tidemark_event::to_json;
use tidemark_event::{LogTime, Offset};
use tidemark_model::{Logged, Model, Settings, Verdict};

use super::*;

fn tea_time() -> Channel {
    Channel {
        conversation: ConversationId::new("irc-tea-2026-03-02").unwrap(),
        name: "tea".to_owned(),
        date: Date::constant(2026, 3, 2),
    }
}

fn transcript(lines: &[&str]) -> Transcript {
    read(lines.join("\n").as_bytes(), &tea_time())
}

/// What happened, in a line each: `joins anna`, `anna says hi @bo`.
fn told(transcript: &Transcript) -> Vec<String> {
    let tell = |event: &Event| match &event.payload {
        Payload::ConversationCreated(created) => format!(
            "{} creates it for {:?}",
            event.actor,
            names(&created.members)
        ),
        Payload::MembersAdded(added) => format!("{:?} join", names(&added.members)),
        Payload::MembersRemoved(removed) => format!("{:?} leave", names(&removed.members)),
        Payload::MessageSent(sent) => format!(
            "{} {} {:?} @{:?}",
            event.actor,
            sent.content_type,
            sent.body,
            names(&sent.mentions)
        ),
        other => panic!("{}", other.type_name()),
    };
    transcript.events.iter().map(tell).collect()
}

fn names(users: &[UserId]) -> Vec<&str> {
    users.iter().map(UserId::as_str).collect()
}

#[track_caller]
fn becomes(lines: &[&str], expected: &[&str]) {
    assert_eq!(told(&transcript(lines)), expected);
}

#[test]
fn a_channel_becomes_a_conversation() {
    let transcript = transcript(&[
        "[09:00] <anna> hello",
        "=== bo [~user@host.example]  has joined #tea",
        "[09:01] <bo> anna: hi",
        "[09:01] * anna waves",
        "=== bo [~user@host.example]  has left #tea",
    ]);
    assert_eq!(
        told(&transcript),
        [
            r#"anna creates it for ["anna"]"#,
            r#"anna text "hello" @[]"#,
            r#"["bo"] join"#,
            r#"bo text "anna: hi" @["anna"]"#,
            r#"anna action "waves" @[]"#,
            r#"["bo"] leave"#,
        ]
    );
    let counts = Counts {
        messages: 3,
        joins: 2,
        leaves: 1,
        renames: 0,
        mentions: 1,
        unreadable_lines: 0,
    };
    assert_eq!(transcript.counts, counts);
}

#[test]
fn membership_is_a_services_word_and_speech_the_users_own() {
    let transcript = transcript(&["[09:00] <anna> hello"]);
    let [created, sent] = &transcript.events[..] else {
        panic!("{transcript:?}");
    };
    assert_eq!(
        to_json(created),
        json!({
            "event_id": created.id,
            "conversation_id": "irc-tea-2026-03-02",
            "actor": "anna",
            "by_service": true,
            "occurred_at": "2026-03-02T09:00:00Z",
            "type": "ConversationCreated",
            "payload": {"kind": "group", "members": ["anna"], "title": "#tea 2026-03-02", "history": "from_join"},
        })
    );
    assert!(!sent.by_service);
}

#[test]
fn who_speaks_or_is_renamed_without_having_joined_joins_before() {
    becomes(
        &[
            "=== anna [~user@host.example]  has joined #tea",
            "[09:00] <bo> hi",
            "[09:00] * zoe yawns",
            "=== kim is now known as kim_",
        ],
        &[
            r#"anna creates it for ["anna"]"#,
            r#"["bo"] join"#,
            r#"bo text "hi" @[]"#,
            r#"["zoe"] join"#,
            r#"zoe action "yawns" @[]"#,
            r#"["kim"] join"#,
        ],
    );
}

#[test]
fn a_join_of_somebody_there_and_a_leave_of_somebody_absent_are_nothing() {
    becomes(
        &[
            "=== zoe [~user@host.example]  has left #tea",
            "[09:00] <anna> hi",
            "=== anna [~user@host.example]  has joined #tea",
            "=== anna [~user@host.example]  has left #tea",
            "=== anna [~user@host.example]  has left #tea",
            "[09:01] <anna> back",
        ],
        &[
            r#"anna creates it for ["anna"]"#,
            r#"anna text "hi" @[]"#,
            r#"["anna"] leave"#,
            r#"["anna"] join"#,
            r#"anna text "back" @[]"#,
        ],
    );
}

#[test]
fn a_renamed_user_is_addressed_by_either_nick() {
    becomes(
        &[
            "[09:00] <anna> hi",
            "=== anna is now known as anna_away",
            "[09:00] <bo> anna: there?",
            "[09:01] <bo> anna_away, there?",
            "[09:01] <anna_away> yes",
        ],
        &[
            r#"anna creates it for ["anna"]"#,
            r#"anna text "hi" @[]"#,
            r#"["bo"] join"#,
            r#"bo text "anna: there?" @["anna"]"#,
            r#"bo text "anna_away, there?" @["anna"]"#,
            r#"anna text "yes" @[]"#,
        ],
    );
}

#[test]
fn whose_nick_another_takes_leaves() {
    becomes(
        &[
            "[09:00] <anna> hi",
            "[09:01] <anna_> my line dropped",
            "=== anna_ is now known as anna",
            "[09:02] <bo> anna: ok",
            "[09:02] <anna_> and who am I?",
        ],
        &[
            r#"anna creates it for ["anna"]"#,
            r#"anna text "hi" @[]"#,
            r#"["anna_"] join"#,
            r#"anna_ text "my line dropped" @[]"#,
            r#"["anna"] leave"#,
            r#"["bo"] join"#,
            r#"bo text "anna: ok" @["anna_"]"#,
            r#"["anna_~2"] join"#,
            r#"anna_~2 text "and who am I?" @[]"#,
        ],
    );
}

#[test]
fn only_a_known_nick_at_the_very_start_is_addressed() {
    for (text, addresses) in [
        ("anna: hi", Some("anna")),
        ("anna, hi", Some("anna")),
        ("  anna:hi", Some("anna")),
        ("well, anna: hi", Some("well")),
        ("oh anna: hi", None),
        (": hi", None),
        ("anna", None),
        ("http://tea.example", Some("http")),
    ] {
        assert_eq!(addressed(text), addresses, "{text}");
    }
    let transcript = transcript(&[
        "[09:00] <anna> bo: hi",
        "[09:00] <bo> well, hi",
        "[09:00] <anna> bo: hi",
    ]);
    assert_eq!(transcript.counts.mentions, 1);
}

#[test]
fn a_log_ends_on_its_date_and_began_the_day_before_where_its_clock_goes_back() {
    let transcript = transcript(&[
        "=== anna [~user@host.example]  has joined #tea",
        "[23:58] <anna> late",
        "[23:57] <anna> set right",
        "=== bo [~user@host.example]  has joined #tea",
        "[00:01] <anna> early",
    ]);
    let times = transcript
        .events
        .iter()
        .map(|event| event.occurred_at.unwrap());
    let times = times.map(|millis| tidemark_event::rfc3339(millis).unwrap());
    assert_eq!(
        times.collect::<Vec<_>>(),
        [
            "2026-03-01T23:58:00Z",
            "2026-03-01T23:58:00Z",
            "2026-03-01T23:57:00Z",
            "2026-03-01T23:57:00Z",
            "2026-03-02T00:01:00Z",
        ]
    );
}

#[test]
fn what_cannot_be_read_is_counted_and_the_first_of_it_named() {
    let mut log = b"\xef\xbb\xbf[09:00] <anna> hi\r\n\n  \nwhat\x07\n".to_vec();
    for _ in 0..20 {
        log.extend(b"\xff\xfe\x00\n");
    }
    log.extend(b"[09:01] <anna> \xff");
    let transcript = read(&log, &tea_time());
    assert_eq!(transcript.counts.messages, 2);
    assert_eq!(transcript.counts.unreadable_lines, 21);
    assert_eq!(transcript.unreadable.len(), UNREADABLE_SHOWN);
    assert_eq!(
        transcript.unreadable[0],
        Unreadable {
            line: 4,
            reason: Reason::UnknownForm,
            beginning: r"what\u{7}".to_owned(),
        }
    );
    assert_eq!(told(&transcript)[2], "anna text \"\u{fffd}\" @[]");
}

#[test]
fn nothing_becomes_nothing() {
    assert_eq!(transcript(&[""]).events, []);
}

#[test]
fn the_same_log_gives_the_same_ids_each_once() {
    let lines = [
        "[09:00] <anna> hi",
        "[09:00] <anna> hi",
        "=== anna is now known as bo",
    ];
    let events = transcript(&lines).events;
    assert_eq!(events, transcript(&lines).events);
    let ids = HashSet::<EventId>::from_iter(events.iter().map(|event| event.id));
    assert_eq!(ids.len(), events.len());
    let other_day = Channel {
        conversation: ConversationId::new("irc-tea-2026-03-03").unwrap(),
        ..tea_time()
    };
    let others = read(lines.join("\n").as_bytes(), &other_day).events;
    assert!(others.iter().all(|event| !ids.contains(&event.id)));
    // Pinned: an id that changes would make a second import add everything again.
    assert_eq!(
        events[0].id.to_string(),
        "c043cd13-5c59-5a7f-83d9-e1822929c0cd"
    );
}

#[test]
fn every_event_is_accepted() {
    let transcript = transcript(&[
        "[23:00] <anna> hi",
        "[23:00] <bo> anna: hi",
        "=== anna is now known as zoe",
        "=== bo is now known as zoe",
        "[01:00] <anna> hm",
        "=== anna [~user@host.example]  has left #tea",
        "[01:00] <anna> hm",
        "[01:00] <zoe> zoe: bo, anna?",
    ]);
    let log = transcript
        .events
        .iter()
        .enumerate()
        .map(|(index, event)| Logged {
            offset: Offset::new(index as i64),
            log_time: LogTime::from_millis(index as i64),
            event: event.clone(),
        });
    let model = Model::of(&log.collect::<Vec<_>>(), &Settings::default());
    for (offset, verdict) in model.verdicts() {
        assert!(
            matches!(verdict, Verdict::Accepted { .. }),
            "{offset}: {verdict:?}"
        );
    }
}
