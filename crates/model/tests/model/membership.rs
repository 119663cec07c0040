//! The scenarios' "Clocks, membership, clearing": who is a member from when, and what may be seen.

use tidemark_event::{History, Seq};
use tidemark_model::story::*;

use crate::ask::{NONE, after, members, session, unread, visible};

#[test]
fn history_from_the_join_on_begins_after_the_last() {
    // F1
    let model = after([
        group(["bo", "anna"]),
        sent("bo").times(10),
        added("bo", ["cem"]),
        sent("bo"),
    ]);
    assert_eq!(
        (visible(&model, "cem"), unread(&model, "cem")),
        (vec![11], 1)
    );
    assert_eq!(
        members(&model),
        [("anna".into(), 1), ("bo".into(), 1), ("cem".into(), 11)]
    );
}

#[test]
fn history_of_all_shows_what_was_before_and_counts_none_of_it() {
    let model = after([
        group(["bo", "anna"]).with_history(),
        sent("bo").times(3),
        added("bo", ["cem"]),
        sent("bo"),
        marked_unread("cem", 1),
    ]);
    assert_eq!(
        (visible(&model, "cem"), unread(&model, "cem")),
        (vec![1, 2, 3, 4], 1)
    );
}

#[test]
fn clearing_hides_all_up_to_it() {
    // F3
    let model = after([
        group(["bo", "anna"]),
        sent("bo").times(100),
        cleared("anna"),
        sent("bo"),
    ]);
    assert_eq!(visible(&model, "anna"), [101]);
    assert_eq!(session(&model, "anna").cleared_to, Seq::new(100));
    assert_eq!(visible(&model, "bo").len(), 101);
}

#[test]
fn the_gap_between_two_memberships_stays_hidden() {
    // F5
    let told = [
        group(["bo", "anna"]),
        sent("bo").times(20),
        removed("bo", ["anna"]),
        sent("bo").times(5),
        changed("bo", None, Some(History::All)),
        added("bo", ["anna"]),
        sent("bo"),
    ];
    let expected = (1..=20).chain([26]).collect::<Vec<_>>();
    assert_eq!(visible(&after(told), "anna"), expected);
}

#[test]
fn a_later_join_under_all_opens_what_was_before_the_first() {
    let told = [
        group(["bo"]),
        sent("bo").times(2),
        added("bo", ["anna"]),
        sent("bo"),
        removed("bo", ["anna"]),
        sent("bo"),
    ];
    let back = |history| {
        [
            changed("bo", None, Some(history)),
            added("bo", ["anna"]),
            sent("bo"),
        ]
    };
    let under_from_join = after([&told[..], &back(History::FromJoin)].concat());
    assert_eq!(visible(&under_from_join, "anna"), [3, 5]);
    let under_all = after([&told[..], &back(History::All)].concat());
    assert_eq!(visible(&under_all, "anna"), [1, 2, 3, 5]);
}

#[test]
fn changing_the_history_setting_does_not_change_the_past_of_those_present() {
    // F6
    let told = [
        group(["bo"]).with_history(),
        sent("bo").times(2),
        added("bo", ["anna"]),
        changed("bo", None, Some(History::FromJoin)),
        added("bo", ["cem", "anna"]),
        sent("bo"),
        changed("bo", None, Some(History::All)),
    ];
    let model = after(told);
    assert_eq!(visible(&model, "anna"), [1, 2, 3]);
    assert_eq!(visible(&model, "cem"), [3]);
}

#[test]
fn what_was_opened_stays_open_over_leaving_and_rejoining_from_the_join_on() {
    let model = after([
        group(["bo"]).with_history(),
        sent("bo").times(2),
        added("bo", ["anna"]),
        removed("bo", ["anna"]),
        changed("bo", None, Some(History::FromJoin)),
        sent("bo"),
        added("bo", ["anna"]),
        sent("bo"),
    ]);
    assert_eq!(visible(&model, "anna"), [1, 2, 4]);
}

#[test]
fn clearing_reaches_what_a_join_opened_too() {
    let model = after([
        group(["bo"]).with_history(),
        sent("bo").times(2),
        added("bo", ["anna"]),
        cleared("anna"),
        removed("bo", ["anna"]),
        added("bo", ["anna"]),
        sent("bo"),
    ]);
    assert_eq!(visible(&model, "anna"), [3]);
}

#[test]
fn a_history_of_which_almost_all_is_hidden_shows_the_rest() {
    // I2
    let hides = (1..=49).map(|seq| hidden("anna", seq));
    let told = [group(["bo", "anna"]), sent("bo").times(50)]
        .into_iter()
        .chain(hides);
    let model = after(told.chain([recalled(50)]));
    assert_eq!(
        visible(&model, "anna"),
        [50],
        "recalled, it keeps its place"
    );
}

#[test]
fn joining_twice_and_leaving_twice_change_nothing() {
    let model = after([
        group(["bo", "anna"]),
        sent("bo").times(2),
        added("bo", ["anna", "anna"]),
        removed("bo", ["cem"]),
        sent("bo"),
    ]);
    assert_eq!(members(&model), [("anna".into(), 1), ("bo".into(), 1)]);
    assert_eq!(unread(&model, "anna"), 3);
}

#[test]
fn a_repeated_creation_brings_nobody_back() {
    let told = [
        group(["bo", "anna"]),
        removed("bo", ["anna"]),
        sent("bo"),
        group(["bo", "anna"]),
    ];
    assert_eq!(members(&after(told)), [("bo".into(), 1)]);
}

#[test]
fn who_was_never_a_member_has_no_session_and_sees_nothing() {
    let model = after([group(["bo", "anna"]), sent("bo").mentioning(["dora"])]);
    assert_eq!(model.session(&user("dora"), &conversation("g1")), None);
    assert_eq!(visible(&model, "dora"), NONE);
}

#[test]
fn who_left_reads_on_up_to_where_they_left_as_it_is_edited() {
    let model = after([
        group(["bo", "anna"]),
        sent("bo").times(2),
        removed("bo", ["anna"]),
        sent("bo"),
        edited(2, "edited later").by("bo"),
    ]);
    assert_eq!(visible(&model, "anna"), [1, 2]);
    let last_message = session(&model, "anna")
        .last_message
        .map(|message| message.body);
    assert_eq!(
        last_message.as_deref(),
        Some("bo says something"),
        "the session is frozen"
    );
}
