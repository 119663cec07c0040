//! Copies expire by the clock, and clocks differ: within an hour of its expiry a copy may be there or not.

use tidemark_audit::{Seen, Shelves};
use tidemark_fold::inbox::InboxKey;
use tidemark_model::story::{FIRST_MILLIS, edited, group, sent, story};
use tidemark_proof::Rules;

use crate::world::{at_rest, audit, lines, of};

const HOUR: i64 = 60 * 60 * 1_000;
const DAY: i64 = 24 * HOUR;

fn rules() -> Rules {
    let mut rules = crate::world::rules();
    rules.generation.inbox_period_millis = DAY;
    rules.generation.inbox_ttl_millis = 2 * DAY;
    rules
}

/// What is found of one old message and one new one, the old one's copies being looked at so long after their expiry.
/// They are kept, kept as they were before an edit, or gone.
fn found(after_expiry: i64, copies: &str) -> Vec<String> {
    let log = story([
        group(["anna", "bo"]),
        sent("anna").saying("old").at(FIRST_MILLIS),
        edited(1, "older").by("anna"),
        sent("anna").saying("new").after(2 * DAY),
    ]);
    let expiry = FIRST_MILLIS - FIRST_MILLIS.rem_euclid(DAY) + 3 * DAY;
    let seen = Seen {
        from: expiry + after_expiry,
        to: expiry + after_expiry + 1,
    };
    let mut shelves = Shelves {
        seen,
        ..at_rest(&log, rules())
    };
    let before_edit = at_rest(&log[..2], rules()).inbox.unwrap();
    let before_edit = before_edit.conversations.into_values().next().unwrap().rows;
    let rows = &mut of(&mut shelves.inbox, "g1").rows;
    let is_old = |key: &InboxKey| matches!(key, InboxKey::Copy { seq, .. } if seq.get() == 1);
    match copies {
        "kept" => {}
        "unedited" => rows.extend(before_edit.into_iter().filter(|(key, _)| is_old(key))),
        "gone" => rows.retain(|key, _| !is_old(key)),
        other => panic!("{other} copies"),
    }
    lines(&audit(&log, shelves, rules().log).differences)
}

#[test]
fn before_its_expiry_a_copy_must_be_there_as_it_was_edited() {
    assert_eq!(found(-2 * HOUR, "kept"), [""; 0]);
    // Two copies: missing by the fold, and by what is visible.
    assert_eq!(found(-2 * HOUR, "gone").len(), 4);
    let stale = found(-2 * HOUR, "unedited");
    assert_eq!(stale.len(), 2);
    assert!(stale.iter().all(|line| line.contains("stale")), "{stale:?}");
}

#[test]
fn about_its_expiry_a_copy_may_be_there_or_not() {
    for after_expiry in [-HOUR / 2, 0, HOUR / 2] {
        for copies in ["kept", "unedited", "gone"] {
            assert_eq!(
                found(after_expiry, copies),
                [""; 0],
                "{after_expiry}, {copies}"
            );
        }
    }
}

#[test]
fn after_its_expiry_a_copy_must_be_gone() {
    assert_eq!(found(2 * HOUR, "gone"), [""; 0]);
    let kept = found(2 * HOUR, "kept");
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|line| line.contains("expired")), "{kept:?}");
}
