//! What devices have yet to store, and what was copied.

use tidemark_event::{History, Seq};
use tidemark_model::{Model, Settings, story::*};

use crate::ask::{NONE, after, copied, inbox, pending};

fn with_copy_limit(copy_limit: usize, told: impl IntoIterator<Item = Told>) -> Model {
    Model::of(
        &story(told),
        &Settings {
            copy_limit,
            ..Settings::default()
        },
    )
}

#[test]
fn an_inbox_begins_at_the_first_join_whatever_the_history() {
    let model = after([
        group(["bo"]).with_history(),
        sent("bo").times(2),
        added("bo", ["anna"]),
        sent("bo"),
        sent("anna"),
        recalled(3),
    ]);
    assert_eq!(inbox(&model, "anna"), [3, 4], "recalled and own ones too");
}

#[test]
fn an_inbox_leaves_out_the_gap_the_cleared_and_the_hidden() {
    let model = after([
        group(["bo", "anna"]),
        sent("bo").times(2),
        cleared("anna"),
        sent("bo").times(2),
        hidden("anna", 4),
        removed("bo", ["anna"]),
        sent("bo"),
        changed("bo", None, Some(History::All)),
        added("bo", ["anna"]),
        sent("bo"),
    ]);
    assert_eq!(inbox(&model, "anna"), [3, 6]);
}

#[test]
fn each_device_acknowledges_for_itself_and_never_back_or_beyond() {
    let model = after([
        group(["bo", "anna"]),
        sent("bo").times(3),
        acked("anna", "phone", 2),
        acked("anna", "phone", 1),
        acked("anna", "laptop", 99),
        sent("bo"),
    ]);
    assert_eq!(pending(&model, "anna", "phone"), [3, 4]);
    assert_eq!(pending(&model, "anna", "laptop"), [4]);
    assert_eq!(pending(&model, "anna", "new one"), [1, 2, 3, 4]);
}

#[test]
fn a_device_of_the_same_name_of_another_user_is_another_device() {
    let model = after([group(["bo", "anna"]), sent("bo"), acked("bo", "phone", 1)]);
    assert_eq!(pending(&model, "anna", "phone"), [1]);
}

#[test]
fn reading_stores_nothing_and_storing_reads_nothing() {
    let model = after([group(["bo", "anna"]), sent("bo").times(2), read("anna", 2)]);
    assert_eq!(pending(&model, "anna", "phone"), [1, 2]);
    let model = after([
        group(["bo", "anna"]),
        sent("bo").times(2),
        acked("anna", "phone", 2),
    ]);
    assert_eq!(crate::ask::unread(&model, "anna"), 2);
}

#[test]
fn a_conversation_that_passes_the_copy_limit_is_never_copied_again() {
    let model = with_copy_limit(
        2,
        [
            group(["bo", "anna"]),
            sent("bo"),
            added("bo", ["cem"]),
            sent("bo"),
            removed("bo", ["cem"]),
            sent("bo"),
        ],
    );
    assert_eq!(model.copied_to(&conversation("g1")), Some(Seq::FIRST));
    assert_eq!(
        (copied(&model, "anna"), inbox(&model, "anna")),
        (vec![1], vec![1, 2, 3])
    );
}

#[test]
fn a_conversation_created_beyond_the_copy_limit_is_never_copied() {
    let model = with_copy_limit(2, [group(["bo", "anna", "cem"]), sent("bo")]);
    assert_eq!(model.copied_to(&conversation("g1")), Some(Seq::ZERO));
    assert_eq!(copied(&model, "anna"), NONE);
}

#[test]
fn a_conversation_at_the_copy_limit_is_copied_to_those_present() {
    let model = with_copy_limit(
        3,
        [
            group(["bo", "anna"]),
            sent("bo"),
            added("bo", ["cem"]),
            sent("bo"),
            removed("bo", ["anna"]),
            sent("bo"),
            hidden("cem", 2),
        ],
    );
    assert_eq!(model.copied_to(&conversation("g1")), None);
    let copies = ["anna", "bo", "cem"].map(|name| copied(&model, name));
    assert_eq!(copies, [vec![1, 2], vec![1, 2, 3], vec![2, 3]]);
    assert_eq!(
        inbox(&model, "cem"),
        [3],
        "what was copied is not always what still shows"
    );
}
