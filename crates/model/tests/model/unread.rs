//! What counts as unread: the scenarios' "Unread and session index", as far as it is about numbers.

use tidemark_event::Seq;
use tidemark_model::story::*;

use crate::ask::{after, after_each, session, session_in, unread};

#[test]
fn own_messages_are_never_unread_and_the_answer_is() {
    // B1
    let told = [direct(["anna", "bo"]), sent("anna").times(5), sent("bo")];
    let unread_after = after_each(told)
        .iter()
        .map(|model| unread(model, "anna"))
        .collect::<Vec<_>>();
    assert_eq!(unread_after, [0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn who_reads_to_the_last_has_nothing_unread() {
    // B2
    let model = after([group(["anna", "bo"]), sent("bo").times(5), read("anna", 5)]);
    assert_eq!(unread(&model, "anna"), 0);
}

#[test]
fn thirty_seven_messages_are_thirty_seven_unread() {
    // B4
    assert_eq!(
        unread(
            &after([group(["anna", "bo"]), sent("bo").times(37)]),
            "anna"
        ),
        37
    );
}

#[test]
fn five_hundred_messages_are_unread_for_everybody_but_their_sender() {
    // A3
    let model = after([group(["anna", "bo", "cem"]), sent("bo").times(500)]);
    assert_eq!(
        ["anna", "bo", "cem"].map(|name| unread(&model, name)),
        [500, 0, 500]
    );
}

#[test]
fn a_busy_group_does_not_drown_a_direct_message() {
    // A15
    let model = after([
        direct(["bo", "anna"]).to("d1"),
        group(["bo", "anna"]),
        sent("bo").to("d1"),
        sent("bo").times(1_100),
    ]);
    assert_eq!(session_in(&model, "anna", "d1").unread, 1);
    assert_eq!(unread(&model, "anna"), 1_100);
    assert_eq!(model.total_unread(&user("anna")), 1_101);
}

#[test]
fn a_record_delivered_twice_counts_once() {
    // A6
    let model = after([group(["anna", "bo"]), sent("bo").id(7).times(2), sent("bo")]);
    assert_eq!(unread(&model, "anna"), 2);
    assert_eq!(model.last_seq(&conversation("g1")), Seq::new(2));
}

#[test]
fn recalled_and_hidden_messages_no_longer_count() {
    // B5
    let model = after([
        group(["anna", "bo"]),
        sent("bo").times(3),
        recalled(1),
        hidden("anna", 2),
        recalled(3).by("bo"),
    ]);
    assert_eq!(unread(&model, "anna"), 0);
}

#[test]
fn what_one_member_hides_still_counts_for_another() {
    let model = after([group(["anna", "bo", "cem"]), sent("bo"), hidden("anna", 1)]);
    assert_eq!(["anna", "cem"].map(|name| unread(&model, name)), [0, 1]);
}

#[test]
fn only_messages_count_that_are_neither_silent_nor_the_systems() {
    // B7
    let model = after([
        group(["anna", "bo"]),
        sent("bo").times(2),
        added("bo", ["cem"]),
        removed("bo", ["cem"]),
        added("bo", ["dora"]),
        sent("bo").silent(),
        noted("dora joined"),
    ]);
    assert_eq!(unread(&model, "anna"), 2);
    assert_eq!(session(&model, "anna").last_seq, Seq::new(4));
}

#[test]
fn a_message_recalled_twice_leaves_the_count_once() {
    // B9
    let models = after_each([
        group(["anna", "bo"]),
        sent("bo").times(3),
        recalled(2),
        recalled(2),
        read("anna", 3),
        recalled(1),
    ]);
    assert_eq!(
        [3, 4, 5, 6, 7].map(|event| unread(&models[event], "anna")),
        [3, 2, 2, 0, 0]
    );
}

#[test]
fn unread_counts_from_the_join_after_leaving_at_twenty() {
    // B24: left at 20, back at 30.
    let left = [
        group(["bo", "anna"]),
        sent("bo").times(20),
        removed("anna", ["anna"]),
    ];
    let back = [sent("bo").times(10), added("bo", ["anna"])];
    let joined = after([&left[..], &back].concat());
    assert_eq!(
        (unread(&joined, "anna"), session(&joined, "anna").read_seq),
        (0, Seq::new(30))
    );

    let model = after([&left[..], &back, &[sent("bo"), marked_unread("anna", 5)]].concat());
    assert_eq!(session(&model, "anna").read_seq, Seq::new(4));
    assert_eq!(
        unread(&model, "anna"),
        1,
        "31 alone: nothing of the earlier membership or the gap"
    );
}

#[test]
fn my_unread_does_not_depend_on_how_far_the_peer_has_read() {
    // B25: the peer has read to 9, I to 5; 9 is silent.
    let model = after([
        direct(["anna", "bo"]),
        sent("bo").times(5),
        read("anna", 5),
        sent("bo").times(3),
        sent("bo").silent(),
    ]);
    let session = session(&model, "anna");
    assert_eq!(
        (session.unread, session.peer_read_seq),
        (3, Some(Seq::new(9)))
    );
}

#[test]
fn a_peer_who_marks_unread_has_still_read() {
    let model = after([
        direct(["anna", "bo"]),
        sent("anna").times(9),
        read("bo", 7),
        marked_unread("bo", 2),
    ]);
    assert_eq!(session(&model, "bo").read_seq, Seq::new(1));
    assert_eq!(session(&model, "anna").peer_read_seq, Some(Seq::new(7)));
}

#[test]
fn reading_never_goes_back_or_beyond_the_last() {
    let models = after_each([
        group(["anna", "bo"]),
        sent("bo").times(4),
        read("anna", 3),
        read("anna", 1),
        read("anna", 99),
        sent("bo"),
    ]);
    let read_after = [5, 6, 7, 8].map(|event| session(&models[event], "anna").read_seq.get());
    assert_eq!(read_after, [3, 3, 4, 4]);
    assert_eq!(unread(&models[8], "anna"), 1);
}

#[test]
fn sending_reads_up_to_the_message_sent_silent_ones_too() {
    let model = after([
        group(["anna", "bo"]),
        sent("bo").times(3),
        sent("anna").silent(),
    ]);
    assert_eq!(
        (unread(&model, "anna"), session(&model, "anna").read_seq),
        (0, Seq::new(4))
    );
}

#[test]
fn a_service_sending_in_a_members_name_reads_for_the_member() {
    let model = after([
        group(["anna", "bo"]),
        sent("bo").times(3),
        sent("anna").by_service(),
    ]);
    assert_eq!((unread(&model, "anna"), unread(&model, "bo")), (0, 1));
}

#[test]
fn marking_unread_puts_back_what_belongs_there() {
    let models = after_each([
        group(["anna", "bo"]),
        sent("bo").times(3),
        recalled(2),
        sent("anna"),
        sent("bo"),
        read("anna", 5),
        marked_unread("anna", 1),
        read("anna", 4),
        read("anna", 5),
    ]);
    let told = [7, 8, 9, 10].map(|event| {
        let session = session(&models[event], "anna");
        (
            session.unread,
            session.read_seq.get(),
            session.marked_unread,
        )
    });
    assert_eq!(
        told,
        [(0, 5, false), (3, 0, true), (1, 4, true), (0, 5, false)]
    );
}

#[test]
fn marking_unread_from_above_the_read_position_changes_nothing() {
    let model = after([
        group(["anna", "bo"]),
        sent("bo").times(3),
        read("anna", 2),
        marked_unread("anna", 3),
        marked_unread("anna", 9),
    ]);
    let session = session(&model, "anna");
    assert_eq!(
        (session.read_seq, session.marked_unread),
        (Seq::new(2), false)
    );
}

#[test]
fn the_mark_ends_by_sending_clearing_removal_and_a_new_join() {
    let marked = [
        group(["bo", "anna"]),
        sent("bo"),
        read("anna", 1),
        marked_unread("anna", 1),
    ];
    assert!(session(&after(marked.clone()), "anna").marked_unread);
    for end in [
        vec![sent("anna")],
        vec![cleared("anna")],
        vec![session_removed("anna")],
        vec![removed("bo", ["anna"]), added("bo", ["anna"])],
    ] {
        let model = after([marked.to_vec(), end.clone()].concat());
        assert!(!session(&model, "anna").marked_unread, "{end:?}");
    }
    for no_end in [
        sent("bo"),
        read("anna", 0),
        muted("anna"),
        removed("bo", ["anna"]),
    ] {
        let model = after([&marked[..], std::slice::from_ref(&no_end)].concat());
        assert!(session(&model, "anna").marked_unread, "{no_end:?}");
    }
}

#[test]
fn muting_changes_the_total_only() {
    // B18: 4 of 10 are in c.
    let models = after_each([
        group(["bo", "anna"]).to("c"),
        group(["bo", "anna"]),
        sent("bo").to("c").times(4),
        sent("bo").times(6),
        muted("anna").to("c"),
        read("anna", 4).to("c"),
        unmuted("anna").to("c"),
    ]);
    let told = [11, 12, 13, 14].map(|event| {
        let model = &models[event];
        (
            session_in(model, "anna", "c").unread,
            model.total_unread(&user("anna")),
        )
    });
    assert_eq!(told, [(4, 10), (4, 6), (0, 6), (0, 6)]);
}

#[test]
fn a_conversation_that_is_not_listed_adds_nothing_to_the_total() {
    let told = [
        group(["bo", "anna"]),
        sent("bo").times(2),
        session_removed("anna"),
    ];
    let model = after([&told[..], &[marked_unread("anna", 1)]].concat());
    assert_eq!(
        (unread(&model, "anna"), model.total_unread(&user("anna"))),
        (2, 0)
    );

    let model = after([&told[..], &[marked_unread("anna", 1), sent("bo")]].concat());
    assert_eq!(model.total_unread(&user("anna")), 3);
}

#[test]
fn a_late_read_after_a_clear_brings_nothing_back() {
    // F8
    let model = after([
        group(["anna", "bo"]),
        sent("bo").times(5),
        cleared("anna"),
        read("anna", 3),
        marked_unread("anna", 1),
    ]);
    assert_eq!(unread(&model, "anna"), 0);
    assert_eq!(session(&model, "anna").last_message, None);
}

#[test]
fn clocks_of_senders_decide_nothing() {
    // E1, E3
    let model = after([
        group(["anna", "bo"]),
        sent("bo").occurred_at(FIRST_MILLIS + 3_600_000),
        read("anna", 1),
        sent("bo").occurred_at(FIRST_MILLIS - 3_600_000),
        sent("bo").occurred_at(4_102_444_800_000),
        sent("bo"),
    ]);
    assert_eq!(unread(&model, "anna"), 3);
    let last = session(&model, "anna")
        .last_message
        .map(|message| message.seq);
    assert_eq!(last, Some(Seq::new(4)));
}
