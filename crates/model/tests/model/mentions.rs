//! The scenarios' "Mentions".

use tidemark_event::Seq;
use tidemark_model::{Mention, story::*};

use crate::ask::{NONE, after, after_each, mentions, message, session, unread};

#[test]
fn a_mention_of_somebody_else_is_none_of_mine() {
    // B21
    let model = after([group(["anna", "bo", "cem"]), sent("bo").mentioning(["cem"])]);
    assert_eq!(
        (unread(&model, "anna"), mentions(&model, "anna")),
        (1, vec![])
    );
    assert_eq!(mentions(&model, "cem"), [1]);
}

#[test]
fn a_mention_that_is_read_is_gone() {
    // C1
    let told = [
        group(["anna", "bo"]),
        sent("bo").times(4),
        sent("bo").mentioning(["anna"]),
    ];
    assert_eq!(mentions(&after(told.clone()), "anna"), [5]);
    assert_eq!(
        mentions(&after([&told[..], &[read("anna", 5)]].concat()), "anna"),
        NONE
    );
}

#[test]
fn mention_all_flags_everybody_but_the_sender() {
    // C2, H3
    let model = after([
        group(["anna", "bo", "cem"]),
        sent("anna").mentioning_all().times(10),
        marked_unread("anna", 1),
    ]);
    let flags = ["anna", "bo", "cem"].map(|name| session(&model, name).mentioned_all);
    assert_eq!(flags, [None, Some(Seq::new(10)), Some(Seq::new(10))]);
    assert_eq!(mentions(&model, "bo"), NONE, "not by name");
}

#[test]
fn the_flag_falls_back_to_an_older_mention_of_all_and_ends_with_the_last() {
    let models = after_each([
        group(["anna", "bo"]),
        sent("anna").mentioning_all().times(3),
        recalled(3),
        hidden("bo", 2),
        read("bo", 1),
    ]);
    let flags = [3, 4, 5, 6].map(|event| session(&models[event], "bo").mentioned_all.map(Seq::get));
    assert_eq!(flags, [Some(3), Some(2), Some(1), None]);
}

#[test]
fn an_edit_takes_a_mention_out_and_leaves_the_message_unread() {
    // C4
    let model = after([
        group(["anna", "bo"]),
        sent("bo").mentioning(["anna"]),
        edited(1, "never mind").by("bo").mentioning(NOBODY),
    ]);
    assert_eq!(
        (unread(&model, "anna"), mentions(&model, "anna")),
        (1, vec![])
    );
}

#[test]
fn an_edit_adds_a_mention_and_one_without_mentions_keeps_them() {
    let model = after([
        group(["anna", "bo"]),
        sent("bo"),
        edited(1, "anna?").by("bo").mentioning(["anna"]),
        edited(1, "anna!").by("bo"),
    ]);
    assert_eq!(mentions(&model, "anna"), [1]);
    assert_eq!(message(&model, 1).body, "anna!");
}

#[test]
fn an_edit_of_a_read_message_flags_nobody() {
    let model = after([
        group(["anna", "bo"]),
        sent("bo"),
        read("anna", 1),
        edited(1, "anna?").by("bo").mentioning(["anna"]),
    ]);
    assert_eq!(mentions(&model, "anna"), NONE);
}

#[test]
fn a_recalled_message_keeps_its_mentions_and_flags_nobody() {
    let model = after([
        group(["anna", "bo"]),
        sent("bo").mentioning(["anna"]).mentioning_all(),
        recalled(1),
        edited(1, "again").mentioning(["anna"]),
    ]);
    let message = message(&model, 1);
    assert_eq!((message.body.as_str(), message.edited_at), ("", None));
    assert_eq!(message.mentions, users(["anna"]));
    let session = session(&model, "anna");
    assert_eq!(
        (session.unread_mentions, session.mentioned_all),
        (vec![], None)
    );
}

#[test]
fn a_silent_message_mentions_without_flagging() {
    let model = after([
        group(["anna", "bo"]),
        sent("bo").silent().mentioning(["anna"]).mentioning_all(),
    ]);
    let session = session(&model, "anna");
    assert_eq!(
        (session.unread_mentions, session.mentioned_all),
        (vec![], None)
    );
}

#[test]
fn a_mention_of_oneself_or_of_an_outsider_is_stored_and_flags_nobody() {
    let model = after([
        group(["bo", "anna"]),
        sent("bo").mentioning(["dora", "bo", "dora"]),
        added("bo", ["dora"]),
        marked_unread("dora", 1),
        marked_unread("bo", 1),
    ]);
    assert_eq!(message(&model, 1).mentions, users(["bo", "dora"]));
    assert_eq!(
        ["bo", "dora"].map(|name| mentions(&model, name)),
        [NONE, NONE]
    );
}

#[test]
fn a_mention_in_a_muted_conversation_is_listed_while_the_total_leaves_it_out() {
    // C9
    let model = after([
        group(["bo", "anna"]),
        sent("bo").mentioning(["anna"]),
        muted("anna"),
    ]);
    assert_eq!(model.mentions(&user("anna")).len(), 1);
    assert_eq!(model.total_unread(&user("anna")), 0);
}

#[test]
fn three_mentions_in_nine_hundred_are_named_by_seq_and_listed_newest_first() {
    // C12
    let model = after([
        group(["bo", "anna"]),
        group(["bo", "anna"]).to("g2"),
        sent("bo").times(11),
        sent("bo").mentioning(["anna"]),
        sent("bo").times(397),
        sent("bo").mentioning(["anna"]),
        sent("bo").to("g2").mentioning(["anna"]),
        sent("bo").times(488),
        sent("bo").mentioning(["anna"]),
        sent("bo"),
    ]);
    assert_eq!(mentions(&model, "anna"), [12, 410, 899]);
    let listed = model.mentions(&user("anna"));
    let places = listed.iter().map(
        |Mention {
             conversation, seq, ..
         }| (conversation.as_str(), seq.get()),
    );
    assert_eq!(
        places.collect::<Vec<_>>(),
        [("g1", 899), ("g2", 1), ("g1", 410), ("g1", 12)]
    );
}

#[test]
fn who_left_has_no_mentions() {
    let model = after([
        group(["bo", "anna"]),
        sent("bo").mentioning(["anna"]).mentioning_all(),
        removed("bo", ["anna"]),
    ]);
    let session = session(&model, "anna");
    assert_eq!(
        (
            session.unread,
            session.unread_mentions,
            session.mentioned_all
        ),
        (0, vec![], None)
    );
    assert_eq!(model.mentions(&user("anna")), []);
}
