//! One record, one verdict.

use tidemark_event::{History, MAX_MEMBERS_PER_EVENT, Offset, Seq};
use tidemark_model::{Model, Settings, Verdict, story::*};

use crate::ask::{verdict, verdicts};

const ACCEPTED: Verdict = Verdict::Accepted { seq: None };

/// Checks the verdict of one more event in a group of anna and bo with one message.
#[track_caller]
fn check(told: Told, expected: Verdict) {
    assert_eq!(verdict([group(["anna", "bo"]), sent("bo"), told]), expected);
}

#[track_caller]
fn refused(told: Told, reason: &'static str) {
    check(told, Verdict::Refused(reason));
}

#[test]
fn only_messages_take_a_seq() {
    check(
        sent("anna"),
        Verdict::Accepted {
            seq: Some(Seq::new(2)),
        },
    );
    for told in [
        changed("anna", Some("tea"), Some(History::All)),
        added("anna", ["cem"]),
        removed("anna", ["bo"]),
        edited(1, "edited"),
        recalled(1),
        hidden("anna", 1),
        read("anna", 1),
        marked_unread("anna", 1),
        pinned("anna"),
        cleared("anna"),
        session_removed("anna"),
        acked("anna", "phone", 1),
    ] {
        check(told, ACCEPTED);
    }
}

#[test]
fn nothing_happens_in_a_conversation_that_does_not_exist() {
    for told in [
        sent("anna"),
        sent("anna").by_service(),
        added("anna", crowd(1_001)),
    ] {
        refused(told.to("g2"), "no_such_conversation");
    }
    let model = Model::of(&story([sent("anna")]), &Settings::default());
    assert!(!model.exists(&conversation("g1")));
}

#[test]
fn a_creation_again_is_fine_with_the_same_content_only() {
    let first = || group(["anna", "bo"]).titled("tea");
    let again = |told: Told| verdict([first(), sent("bo"), told]);
    assert_eq!(again(first()), ACCEPTED);
    assert_eq!(
        again(group(["bo", "anna", "bo"]).titled("tea")),
        ACCEPTED,
        "a set, by another member"
    );
    for told in [
        direct(["anna", "bo"]).titled("tea"),
        group(["anna", "bo"]),
        first().with_history(),
        group(["anna", "bo", "cem"]).titled("tea"),
        group(NOBODY).titled("tea"),
    ] {
        assert_eq!(again(told), Verdict::Refused("exists_with_other_content"));
    }
}

#[test]
fn a_creation_again_is_held_against_the_first_whatever_changed_since() {
    let told = [
        group(["anna", "bo"]),
        changed("anna", Some("tea"), Some(History::All)),
        removed("bo", ["anna"]),
        group(["anna", "bo"]),
        group(["bo"]).titled("tea").with_history(),
    ];
    let judged = verdicts(told, &Settings::default());
    assert_eq!(
        judged[3..],
        [ACCEPTED, Verdict::Refused("exists_with_other_content")]
    );
}

#[test]
fn a_creation_needs_its_members() {
    for told in [
        group(NOBODY),
        group(crowd(MAX_MEMBERS_PER_EVENT + 1)),
        direct(["anna"]),
        direct(["anna", "anna"]),
        direct(["anna", "bo", "cem"]),
        group(["anna", "bo"]).by("cem"),
    ] {
        assert_eq!(verdict([told]), Verdict::Refused("bad_members"));
    }
    for told in [
        group(crowd(MAX_MEMBERS_PER_EVENT)),
        group(["anna"]),
        direct(["anna", "bo", "anna"]),
        group(["anna", "bo"]).by("cem").by_service(),
    ] {
        assert_eq!(verdict([told]), ACCEPTED);
    }
}

#[test]
fn no_event_moves_more_than_a_thousand() {
    let too_many = MAX_MEMBERS_PER_EVENT + 1;
    refused(added("anna", crowd(too_many)), "bad_members");
    refused(removed("anna", crowd(too_many)), "bad_members");
    check(added("anna", crowd(MAX_MEMBERS_PER_EVENT)), ACCEPTED);
    check(added("anna", vec!["cem"; too_many]), ACCEPTED);
    check(added("anna", NOBODY), ACCEPTED);
}

#[test]
fn a_direct_chat_keeps_its_two() {
    for told in [
        added("anna", ["cem"]),
        removed("anna", ["anna"]),
        added("desk", NOBODY).by_service(),
    ] {
        let judged = verdict([direct(["anna", "bo"]), told]);
        assert_eq!(judged, Verdict::Refused("direct_is_fixed"));
    }
}

#[test]
fn an_outsider_does_nothing() {
    for told in [
        changed("cem", Some("tea"), None),
        added("cem", ["cem"]),
        removed("cem", ["cem"]),
        sent("cem"),
        edited(1, "edited").by("cem"),
        recalled(1).by("cem"),
        hidden("cem", 1),
        read("cem", 1),
        marked_unread("cem", 1),
        pinned("cem"),
        cleared("cem"),
        session_removed("cem"),
        acked("cem", "phone", 1),
    ] {
        refused(told, "not_a_member");
    }
}

#[test]
fn a_service_needs_no_membership_but_for_what_is_somebodys_own() {
    for told in [
        changed("desk", Some("tea"), None),
        added("desk", ["cem"]),
        removed("desk", ["bo"]),
        edited(1, "edited"),
        recalled(1),
    ] {
        check(told.by_service(), ACCEPTED);
    }
    check(
        noted("hello"),
        Verdict::Accepted {
            seq: Some(Seq::new(2)),
        },
    );
    for told in [
        hidden("cem", 1),
        read("cem", 1),
        marked_unread("cem", 1),
        pinned("cem"),
        cleared("cem"),
        session_removed("cem"),
        acked("cem", "phone", 1),
    ] {
        refused(told.by_service(), "not_a_member");
    }
    check(read("anna", 1).by_service(), ACCEPTED);
}

#[test]
fn who_left_is_an_outsider() {
    let told = [
        group(["anna", "bo"]),
        removed("bo", ["anna"]),
        read("anna", 0),
    ];
    assert_eq!(verdict(told), Verdict::Refused("not_a_member"));
}

#[test]
fn what_is_named_must_exist() {
    for seq in [0, 2] {
        refused(edited(seq, "edited"), "no_such_seq");
        refused(recalled(seq), "no_such_seq");
        refused(hidden("anna", seq), "no_such_seq");
        refused(sent("anna").replying_to(seq), "no_such_seq");
    }
    refused(marked_unread("anna", 0), "no_such_seq");
    for told in [
        marked_unread("anna", 9),
        read("anna", 0),
        read("anna", 9),
        acked("anna", "phone", 9),
    ] {
        check(told, ACCEPTED);
    }
}

#[test]
fn a_message_before_ones_own_time_may_be_hidden_and_answered() {
    let told = [
        group(["bo"]),
        sent("bo"),
        added("bo", ["anna"]),
        hidden("anna", 1),
    ];
    assert_eq!(verdict(told.clone()), ACCEPTED);
    let answer = [&told[..], &[sent("anna").replying_to(1)]].concat();
    assert_eq!(
        verdict(answer),
        Verdict::Accepted {
            seq: Some(Seq::new(2))
        }
    );
}

#[test]
fn only_a_service_speaks_for_the_system() {
    refused(sent("anna").content_type("system"), "not_allowed");
    check(
        noted("hello"),
        Verdict::Accepted {
            seq: Some(Seq::new(2)),
        },
    );
}

#[test]
fn the_first_rule_that_is_broken_is_the_reason() {
    refused(
        sent("cem").content_type("system").replying_to(9),
        "not_a_member",
    );
    refused(
        sent("anna").content_type("system").replying_to(9),
        "no_such_seq",
    );
    refused(added("cem", crowd(1_001)), "bad_members");
    refused(hidden("cem", 9), "not_a_member");
    let fixed = [direct(["anna", "bo"]), added("cem", ["cem"])];
    assert_eq!(verdict(fixed), Verdict::Refused("direct_is_fixed"));
    let duplicate = [group(["anna", "bo"]).id(1), sent("stranger").id(1)];
    assert_eq!(verdict(duplicate), Verdict::Duplicate);
}

#[test]
fn a_refused_event_is_judged_anew_when_it_comes_again() {
    let told = [
        group(["anna", "bo"]),
        sent("cem").id(7),
        sent("cem").id(7),
        added("anna", ["cem"]),
        sent("cem").id(7),
        sent("cem").id(7),
    ];
    let judged = verdicts(told, &Settings::default());
    let refused = Verdict::Refused("not_a_member");
    let first = Verdict::Accepted {
        seq: Some(Seq::FIRST),
    };
    assert_eq!(
        judged,
        [
            ACCEPTED,
            refused,
            refused,
            ACCEPTED,
            first,
            Verdict::Duplicate
        ]
    );
}

#[test]
fn a_verdict_stands_at_its_offset_and_nowhere_else() {
    let log = story([group(["anna", "bo"]), sent("bo").offset(5), sent("bo")]);
    let model = Model::of(&log, &Settings::default());
    let at = |offset| model.verdict(Offset::new(offset));
    let seq = |seq| {
        Some(Verdict::Accepted {
            seq: Some(Seq::new(seq)),
        })
    };
    assert_eq!([0, 1, 5, 6].map(at), [Some(ACCEPTED), None, seq(1), seq(2)]);
}

#[test]
fn a_log_prints_as_the_story_that_makes_it() {
    let log = story([
        sent("bo")
            .saying("hello")
            .mentioning(["anna"])
            .silent()
            .id(7),
        edited(1, "oh"),
    ]);
    let told = format!("{log:?}");
    let lines = told
        .lines()
        .map(str::trim)
        .filter(|line| line.len() > 1)
        .collect::<Vec<_>>();
    assert_eq!(
        lines,
        [
            r#"sent("bo").saying("hello").mentioning(["anna"]).silent().to("g1").id(0x7).offset(0).at(1777636800000),"#,
            r#"edited(1, "oh").by("desk").by_service().to("g1").id(0x10000000000000001).offset(1).at(1777636801000)]"#,
        ]
    );
    let again = story([
        sent("bo")
            .saying("hello")
            .mentioning(["anna"])
            .silent()
            .to("g1")
            .id(0x7)
            .offset(0)
            .at(1777636800000),
        edited(1, "oh")
            .by("desk")
            .by_service()
            .to("g1")
            .id(0x10000000000000001)
            .offset(1)
            .at(1777636801000),
    ]);
    assert_eq!(again, log);
}
