//! Which limits decide anything: the dedupe window's two ends.

use tidemark_event::Seq;
use tidemark_model::{Settings, Verdict, story::*};

use crate::ask::verdicts;

const DAY: i64 = 24 * 60 * 60 * 1_000;

fn seq(seq: u64) -> Verdict {
    Verdict::Accepted {
        seq: Some(Seq::new(seq)),
    }
}

#[test]
fn an_id_counts_until_it_is_as_old_as_the_window() {
    let told = |age| {
        [
            group(["bo", "anna"]),
            sent("bo").id(7),
            sent("anna").id(7).after(age),
        ]
    };
    assert_eq!(
        verdicts(told(DAY - 1), &Settings::default())[2],
        Verdict::Duplicate
    );
    assert_eq!(verdicts(told(DAY), &Settings::default())[2], seq(2));
}

#[test]
fn an_id_counts_while_it_is_among_the_newest() {
    let settings = Settings {
        dedupe_max_ids: 3,
        ..Settings::default()
    };
    let told = |between| {
        [
            group(["bo", "anna"]),
            sent("bo").id(7),
            read("anna", 1).times(between),
            sent("bo").id(7),
        ]
    };
    assert_eq!(verdicts(told(2), &settings)[4], Verdict::Duplicate);
    assert_eq!(verdicts(told(3), &settings)[5], seq(2));
}

#[test]
fn a_duplicate_or_a_refusal_takes_no_place_among_the_newest() {
    let settings = Settings {
        dedupe_max_ids: 2,
        ..Settings::default()
    };
    let told = [
        group(["bo", "anna"]),
        sent("bo").id(7),
        read("anna", 1).id(8),
        read("anna", 1).id(8).times(3),
        sent("stranger").times(3),
        sent("bo").id(7),
    ];
    assert_eq!(verdicts(told, &settings)[9], Verdict::Duplicate);
}

#[test]
fn a_duplicate_does_not_keep_its_id_young() {
    let told = [
        group(["bo", "anna"]),
        sent("bo").id(7),
        sent("bo").id(7).after(DAY - 1),
        sent("bo").id(7).after(1),
        sent("bo").id(7).after(1),
    ];
    let judged = verdicts(told, &Settings::default());
    assert_eq!(
        judged[2..],
        [Verdict::Duplicate, seq(2), Verdict::Duplicate]
    );
}

#[test]
fn the_window_is_the_conversations_own() {
    let told = [
        group(["bo", "anna"]).id(1),
        group(["bo", "anna"]).to("g2").id(1),
    ];
    let accepted = Verdict::Accepted { seq: None };
    assert_eq!(verdicts(told, &Settings::default()), [accepted, accepted]);
}
