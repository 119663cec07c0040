//! The session's other fields: the scenarios' "Unread and session index", as far as it is about the list.

use tidemark_event::{Kind, LogTime, Seq};
use tidemark_model::{Model, Session, story::*};

use crate::ask::{after, after_each, session, session_in, unread};

fn list(model: &Model, name: &str) -> Vec<String> {
    let sessions = model.sessions(&user(name)).into_iter();
    sessions
        .map(|session| session.conversation.to_string())
        .collect()
}

#[track_caller]
fn last_body(model: &Model, name: &str) -> Option<String> {
    session(model, name)
        .last_message
        .map(|message| message.body)
}

#[test]
fn a_new_conversation_is_listed_as_it_was_created() {
    let told = [
        direct(["anna", "bo"]).titled("tea"),
        drafted("bo", "dear anna"),
    ];
    assert_eq!(
        session(&after(told), "bo"),
        Session {
            conversation: conversation("g1"),
            kind: Kind::Direct,
            title: "tea".to_owned(),
            members: 2,
            last_seq: Seq::ZERO,
            last_message: None,
            last_active_at: LogTime::from_millis(FIRST_MILLIS),
            read_seq: Seq::ZERO,
            unread: 0,
            unread_mentions: vec![],
            mentioned_all: None,
            cleared_to: Seq::ZERO,
            peer_read_seq: Some(Seq::ZERO),
            marked_unread: false,
            pinned: false,
            muted: false,
            draft: "dear anna".to_owned(),
            left: false,
            listed: true,
        }
    );
}

#[test]
fn a_session_removed_comes_back_with_the_next_message_of_any_kind() {
    // B15
    let told = [
        group(["bo", "anna"]),
        sent("bo").times(20),
        session_removed("anna"),
    ];
    let model = after(told.clone());
    assert_eq!((list(&model, "anna"), unread(&model, "anna")), (vec![], 0));

    for (message, count) in [(sent("bo"), 1), (sent("bo").silent(), 0), (sent("anna"), 0)] {
        let model = after([&told[..], &[message]].concat());
        assert_eq!(
            (list(&model, "anna"), unread(&model, "anna")),
            (vec!["g1".into()], count)
        );
    }
    let model = after([&told[..], &[edited(20, "?"), pinned("anna")]].concat());
    assert_eq!(
        list(&model, "anna"),
        Vec::<String>::new(),
        "an edit is no message"
    );
}

#[test]
fn who_was_offline_finds_the_count_and_the_newest_message() {
    // B17, D10
    let told = [
        group(["bo", "anna"]),
        sent("bo").times(79),
        sent("bo").saying("the newest"),
    ];
    let model = after(told);
    assert_eq!(unread(&model, "anna"), 80);
    assert_eq!(last_body(&model, "anna").as_deref(), Some("the newest"));
}

#[test]
fn it_makes_no_difference_on_which_device_somebody_read() {
    // B26
    let told = [
        group(["bo", "anna"]),
        sent("bo").times(2),
        acked("anna", "phone", 1),
    ];
    assert_eq!(
        unread(&after([&told[..], &[read("anna", 2)]].concat()), "anna"),
        0
    );
}

#[test]
fn fifty_conversations_are_listed_one_of_them_without_a_last_message() {
    // D3
    let named = (1..=50).map(|number| group(["bo", "anna"]).to(&format!("g{number}")));
    let spoken = (2..=50).map(|number| sent("bo").to(&format!("g{number}")));
    let model = after(named.chain(spoken));
    assert_eq!(list(&model, "anna").len(), 50);
    assert_eq!(session(&model, "anna").last_message, None);
}

#[test]
fn the_list_is_pinned_first_then_newest_activity_then_by_id() {
    let model = after([
        group(["bo", "anna"]).to("a"),
        group(["bo", "anna"]).to("b"),
        group(["bo", "anna"]).to("d"),
        group(["bo", "anna"]).to("c").after(0),
        pinned("anna").to("a"),
        sent("bo").to("b"),
    ]);
    assert_eq!(list(&model, "anna"), ["a", "b", "c", "d"]);
}

#[test]
fn only_messages_move_the_order() {
    // D5, D8
    let told = [
        group(["bo", "anna"]),
        group(["bo", "anna"]).to("g2"),
        sent("bo").times(2),
        sent("bo").to("g2"),
    ];
    let changes = [
        changed("bo", Some("harbour"), None),
        added("bo", ["cem"]),
        removed("bo", ["cem"]),
        edited(2, "edited").by("bo"),
        recalled(1),
        read("anna", 2),
        cleared("anna"),
        group(["bo", "anna"]),
    ];
    for length in 0..=changes.len() {
        let model = after([&told[..], &changes[..length]].concat());
        assert_eq!(
            list(&model, "anna"),
            ["g2", "g1"],
            "{:?}",
            changes.get(length)
        );
    }
}

#[test]
fn the_preview_follows_an_edit_of_the_last_message_only() {
    // D8
    let told = [group(["bo", "anna"]), sent("bo").times(2)];
    let older = after([&told[..], &[edited(1, "older")]].concat());
    assert_eq!(
        last_body(&older, "anna").as_deref(),
        Some("bo says something")
    );
    let newest = after([&told[..], &[edited(2, "newest")]].concat());
    assert_eq!(last_body(&newest, "anna").as_deref(), Some("newest"));
}

#[test]
fn the_last_message_is_shown_recalled_and_never_an_older_one_instead() {
    let told = [group(["bo", "anna"]), sent("bo").times(2)];
    let model = after([&told[..], &[recalled(2)]].concat());
    let last = session(&model, "anna").last_message;
    assert_eq!(
        last.map(|last| (last.seq, last.recalled)),
        Some((Seq::new(2), true))
    );
    for gone in [hidden("anna", 2), cleared("anna")] {
        let model = after([&told[..], &[gone]].concat());
        assert_eq!(last_body(&model, "anna"), None);
        assert!(last_body(&model, "bo").is_some());
    }
}

#[test]
fn a_new_member_sees_the_last_message_where_history_lets_them() {
    let told = |creation| after([creation, sent("bo"), added("bo", ["cem"])]);
    assert_eq!(last_body(&told(group(["bo"])), "cem"), None);
    assert!(last_body(&told(group(["bo"]).with_history()), "cem").is_some());
}

#[test]
fn activity_is_the_newest_message_since_the_join_else_the_join() {
    let at = |seconds: i64| LogTime::from_millis(FIRST_MILLIS + 1_000 * seconds);
    let models = after_each([
        group(["bo", "anna"]),
        sent("bo"),
        added("bo", ["cem"]),
        sent("bo").silent(),
        recalled(2),
        removed("bo", ["cem"]),
        sent("bo"),
        added("bo", ["cem"]),
    ]);
    let active = |event: usize, name| session(&models[event], name).last_active_at;
    assert_eq!(
        [0, 1, 2].map(|event| active(event, "anna")),
        [at(0), at(1), at(1)]
    );
    assert_eq!(
        [2, 3, 4, 6, 7].map(|event| active(event, "cem")),
        [at(2), at(3), at(3), at(3), at(7)]
    );
}

#[test]
fn a_session_freezes_when_its_user_leaves() {
    let told = [
        group(["bo", "anna", "cem"]).titled("before"),
        sent("bo").times(2),
        marked_unread("anna", 1),
        muted("anna"),
        removed("bo", ["anna"]),
    ];
    let frozen = session(&after(told.clone()), "anna");
    assert!(frozen.left && frozen.muted && frozen.listed);
    assert_eq!(
        (frozen.members, frozen.last_seq, frozen.unread),
        (2, Seq::new(2), 0)
    );

    let later = [
        sent("bo"),
        changed("bo", Some("after"), None),
        recalled(2),
        removed("bo", ["cem"]),
        sent("anna").by_service(),
    ];
    assert_eq!(
        session(&after([&told[..], &later].concat()), "anna"),
        frozen
    );
}

#[test]
fn who_rejoins_finds_their_settings_and_the_present() {
    let model = after([
        group(["bo", "anna"]),
        sent("bo"),
        pinned("anna"),
        drafted("anna", "dear all"),
        cleared("anna"),
        removed("anna", ["anna"]),
        changed("bo", Some("harbour"), None),
        sent("bo"),
        added("bo", ["anna"]),
    ]);
    let session = session(&model, "anna");
    assert!(session.pinned && !session.left);
    assert_eq!(
        (session.draft.as_str(), session.title.as_str()),
        ("dear all", "harbour")
    );
    assert_eq!(
        (session.cleared_to, session.read_seq),
        (Seq::new(1), Seq::new(2))
    );
    assert_eq!(
        (session.last_seq, session.last_message),
        (Seq::new(2), None)
    );
}

#[test]
fn a_session_removed_before_leaving_stays_off_the_list_until_a_message_after_rejoining() {
    let told = [
        group(["bo", "anna"]),
        sent("bo"),
        session_removed("anna"),
        removed("bo", ["anna"]),
        sent("bo"),
        added("bo", ["anna"]),
    ];
    let models = after_each(told);
    let listed = [2, 3, 4, 5].map(|event| session(&models[event], "anna").listed);
    assert_eq!(
        listed,
        [false, false, false, true],
        "back, the last seq is beyond the removal"
    );
}

#[test]
fn settings_that_an_event_leaves_out_stay() {
    let model = after([
        group(["bo", "anna"]),
        session_changed("anna", Some(true), Some(true), Some("dear")),
        session_changed("anna", Some(false), None, None),
        drafted("anna", ""),
    ]);
    let session = session_in(&model, "anna", "g1");
    assert_eq!(
        (session.pinned, session.muted, session.draft.as_str()),
        (false, true, "")
    );
}

#[test]
fn clearing_and_removal_read_to_the_last() {
    for act in [cleared("anna"), session_removed("anna")] {
        let model = after([group(["bo", "anna"]), sent("bo").times(3), act]);
        assert_eq!(session(&model, "anna").read_seq, Seq::new(3));
    }
}
