//! Each corruption of a store is named exactly.

use tidemark_audit::Shelves;
use tidemark_event::{Fingerprint, LogTime, NextOffset, Offset, Seq};
use tidemark_fold::{
    DedupeWindow, PieceNo,
    inbox::{InboxKey, InboxRow},
    sessions::BlockNo,
};
use tidemark_model::{
    Logged,
    story::{acked, direct, edited, event_id, group, hidden, read, recalled, sent, story, user},
};

use tidemark_proof::Rules;

use crate::world::{assert_clean, at_rest, audit, folded, key_of, lines, of};

/// Pieces are small and the window long.
fn rules() -> Rules {
    let mut rules = crate::world::rules();
    rules.log.dedupe = DedupeWindow::default();
    rules
}

/// Ten messages, and one of everything that changes them. Three members: as many as have copies.
fn chat() -> Vec<Logged> {
    story([
        group(["anna", "bo", "cem"]),
        sent("anna").times(3),
        sent("bo").saying("hello").mentioning(["anna"]),
        sent("cem").mentioning_all(),
        edited(4, "hello you").by("bo"),
        read("anna", 3),
        recalled(2).by("anna"),
        sent("bo").times(4),
        hidden("cem", 7),
        acked("anna", "phone", 5),
        sent("cem"),
        direct(["anna", "dora"]).to("d1"),
        sent("anna").to("d1"),
    ])
}

/// Plants something into the store at rest behind the chat, and looks at all that is then found.
#[track_caller]
fn check(plant: impl FnOnce(&mut Shelves), wanted: &[&str]) {
    let log = chat();
    let mut shelves = at_rest(&log, rules());
    plant(&mut shelves);
    let report = audit(&log, shelves, rules().log);
    let found: Vec<String> = lines(&report.differences)
        .iter()
        .map(|line| line.replace(", partition 0, conversation ", ", "))
        .collect();
    assert_eq!(found, wanted, "found:\n{}", found.join("\n"));
    assert_eq!(report.difference_count, wanted.len() as u64);
}

#[test]
fn nothing_planted_is_nothing_found() {
    check(|_| {}, &[]);
}

#[test]
fn a_wrong_count_is_told_by_the_fold_and_by_counting() {
    check(
        |shelves| {
            let row = of(&mut shelves.sessions, "g1").rows.get_mut(&user("anna"));
            row.unwrap().tally.unread += 1;
        },
        &[
            "sessions, g1, session of anna, applied 15: tally.unread is 8, not 7",
            "sessions, g1, session of anna, applied 15: found 8, wanted 7 unread (unread is what can be counted)",
        ],
    );
    check(
        |shelves| {
            let row = of(&mut shelves.sessions, "g1").rows.get_mut(&user("anna"));
            row.unwrap().tally.mention_count = 0;
        },
        &[
            "sessions, g1, session of anna, applied 15: tally.mention_count is 0, not 1",
            "sessions, g1, session of anna, applied 15: found 0, wanted 1 unread mentions (unread is what can be counted)",
        ],
    );
    check(
        |shelves| {
            let row = of(&mut shelves.sessions, "g1").rows.get_mut(&user("anna"));
            row.unwrap().tally.mentioned_all = None;
        },
        &[
            "sessions, g1, session of anna, applied 15: tally.mentioned_all is null, not 5",
            "sessions, g1, session of anna, applied 15: found none, wanted 5 as the newest that mentions all (unread is what can be counted)",
        ],
    );
}

#[test]
fn a_missing_message_is_a_hole() {
    check(
        |shelves| {
            of(&mut shelves.roaming, "g1").rows.remove(&Seq::new(3));
        },
        &[
            "roaming, g1, seq 3, applied 3: missing",
            "roaming, g1, seq 3: found a hole, wanted every message up to last seq 10 (roaming holds 1 to last)",
        ],
    );
    check(
        |shelves| {
            let rows = &mut of(&mut shelves.roaming, "g1").rows;
            rows.retain(|seq, _| *seq < Seq::new(9));
        },
        &[
            "roaming, g1, seq 9, applied 12: missing",
            "roaming, g1, seq 10, applied 15: missing",
            "roaming, g1, seq 9 to 10: found a hole, wanted every message up to last seq 10 (roaming holds 1 to last)",
        ],
    );
}

#[test]
fn a_message_too_many_is_extra() {
    check(
        |shelves| {
            let rows = &mut of(&mut shelves.roaming, "g1").rows;
            let mut row = rows[&Seq::new(10)].clone();
            row.message.seq = Seq::new(11);
            rows.insert(Seq::new(11), row);
        },
        &[
            "roaming, g1, seq 11, applied 15: extra: the log never makes it",
            "roaming, g1, seq 11, applied 15: found seq 11, wanted no message beyond last seq 10 (roaming holds 1 to last)",
        ],
    );
}

#[test]
fn a_body_that_was_changed_is_named_with_both_texts() {
    check(
        |shelves| {
            let row = of(&mut shelves.roaming, "g1").rows.get_mut(&Seq::new(4));
            row.unwrap().message.body = "hello me".to_owned();
        },
        &[
            r#"roaming, g1, seq 4, applied 6: message.body is "hello me", not "hello you""#,
            r#"inbox, g1, copy of seq 4 for anna, applied 6: found body "hello you", wanted body "hello me" as in roaming (inbox holds what is visible)"#,
            r#"inbox, g1, copy of seq 4 for bo, applied 6: found body "hello you", wanted body "hello me" as in roaming (inbox holds what is visible)"#,
            r#"inbox, g1, copy of seq 4 for cem, applied 6: found body "hello you", wanted body "hello me" as in roaming (inbox holds what is visible)"#,
        ],
    );
    check(
        |shelves| {
            let rows = &mut of(&mut shelves.inbox, "g1").rows;
            let key = key_of(
                rows,
                "user: UserId(\"cem\"), period: Period(1), seq: Seq(4)",
            );
            let Some(InboxRow::Copy(copy)) = rows.get_mut(&key) else {
                panic!("no copy")
            };
            copy.message.body = "hello me".to_owned();
        },
        &[
            r#"inbox, g1, copy of seq 4 for cem in period 1, applied 6: message.body is "hello me", not "hello you""#,
            r#"inbox, g1, copy of seq 4 for cem, applied 6: found body "hello me", wanted body "hello you" as in roaming (inbox holds what is visible)"#,
        ],
    );
}

#[test]
fn a_head_too_far_promises_what_is_not_there() {
    check(
        |shelves| {
            let head = of(&mut shelves.roaming, "g1").head.as_mut().unwrap();
            head.last_seq = Seq::new(12);
        },
        &[
            "roaming, g1, head, applied 15: last_seq is 12, not 10",
            "roaming, g1, seq 11 to 12: found a hole, wanted every message up to last seq 12 (roaming holds 1 to last)",
            "sessions, g1, head, applied 15: found last seq 10 at 15 in sessions, wanted last seq 12 at 15 in roaming (all views agree on last seq)",
            "inbox, g1, head, applied 15: found last seq 10 at 15 in inbox, wanted last seq 12 at 15 in roaming (all views agree on last seq)",
        ],
    );
    check(
        |shelves| {
            let head = of(&mut shelves.sessions, "g1").head.as_mut().unwrap();
            head.applied = Offset::new(17);
        },
        &[
            "sessions, g1, head, applied 17: applied is 17, not 15",
            "sessions, g1, head, applied 17: found last seq 10 at 17 in sessions, wanted last seq 10 at 15 in roaming (all views agree on last seq)",
            "inbox, g1, head, applied 15: found last seq 10 at 15 in inbox, wanted last seq 10 at 17 in sessions (all views agree on last seq)",
        ],
    );
}

#[test]
fn a_head_that_is_gone_is_missing_in_its_view_and_beside_the_others() {
    check(
        |shelves| of(&mut shelves.inbox, "d1").head = None,
        &[
            "inbox, d1, head, applied 17: missing",
            "inbox, d1, head, applied 17: found none, wanted a head, as roaming has at last seq 1 (all views agree on last seq)",
            "inbox, d1, head, applied 17: found none, wanted a head, as sessions has at last seq 1 (all views agree on last seq)",
            "inbox, d1, copy of seq 1 for anna, applied 17: found a copy in period 1, wanted no copy without a head (inbox holds what is visible)",
            "inbox, d1, copy of seq 1 for dora, applied 17: found a copy in period 1, wanted no copy without a head (inbox holds what is visible)",
        ],
    );
}

#[test]
fn a_row_that_stayed_behind_is_stale() {
    let log = chat();
    check(
        |shelves| {
            let old = folded::<tidemark_fold::sessions::Sessions>(&log[..11], rules(), 4);
            let old = &old.conversations[&tidemark_model::story::conversation("g1")];
            let row = old.rows[&user("bo")].clone();
            of(&mut shelves.sessions, "g1").rows.insert(user("bo"), row);
        },
        &[
            "sessions, g1, session of bo, applied 10: stale: the checkpoint promises it as of offset 15",
        ],
    );
    check(
        |shelves| {
            let old = folded::<tidemark_fold::roaming::Roaming>(&log[..6], rules(), 4);
            let old = &old.conversations[&tidemark_model::story::conversation("g1")];
            let row = old.rows[&Seq::new(4)].clone();
            of(&mut shelves.roaming, "g1").rows.insert(Seq::new(4), row);
        },
        &["roaming, g1, seq 4, applied 4: stale: the checkpoint promises it as of offset 6"],
    );
    check(
        |shelves| {
            let old = folded::<tidemark_fold::inbox::Inbox>(&log[..11], rules(), 4);
            let old = &old.conversations[&tidemark_model::story::conversation("g1")];
            of(&mut shelves.inbox, "g1").head = old.head.clone();
        },
        &[
            "inbox, g1, head, applied 10: stale: the checkpoint promises it as of offset 15",
            "inbox, g1, head, applied 10: found last seq 7 at 10 in inbox, wanted last seq 10 at 15 in roaming (all views agree on last seq)",
            "inbox, g1, head, applied 10: found last seq 7 at 10 in inbox, wanted last seq 10 at 15 in sessions (all views agree on last seq)",
        ],
    );
}

#[test]
fn a_row_of_somebody_who_never_was_there_is_extra() {
    check(
        |shelves| {
            let rows = &mut of(&mut shelves.sessions, "g1").rows;
            let row = rows[&user("bo")].clone();
            rows.insert(user("mallory"), row);
        },
        &["sessions, g1, session of mallory, applied 15: extra: the log never makes it"],
    );
    check(
        |shelves| {
            let rows = &mut of(&mut shelves.inbox, "g1").rows;
            let key = key_of(
                rows,
                "user: UserId(\"cem\"), period: Period(1), seq: Seq(4)",
            );
            let InboxKey::Copy { period, seq, .. } = key else {
                panic!("no copy")
            };
            let copy = rows[&key].clone();
            let user = user("mallory");
            rows.insert(InboxKey::Copy { user, period, seq }, copy);
        },
        &[
            "inbox, g1, copy of seq 4 for mallory in period 1, applied 6: extra: the log never makes it",
            "inbox, g1, copy of seq 4 for mallory, applied 6: found a copy in period 1, wanted no copy for who was no member then (inbox holds what is visible)",
        ],
    );
}

#[test]
fn what_is_missing_of_an_inbox_is_named() {
    check(
        |shelves| {
            let rows = &mut of(&mut shelves.inbox, "g1").rows;
            let key = key_of(rows, "user: UserId(\"bo\"), period: Period(1), seq: Seq(9)");
            rows.remove(&key);
        },
        &[
            "inbox, g1, copy of seq 9 for bo in period 1, applied 12: missing",
            "inbox, g1, copy of seq 9 for bo: found none, wanted a copy in period 1 (inbox holds what is visible)",
        ],
    );
    check(
        |shelves| {
            let rows = &mut of(&mut shelves.inbox, "d1").rows;
            let key = key_of(rows, "Place { user: UserId(\"dora\")");
            rows.remove(&key);
        },
        &[
            "inbox, d1, place of dora, applied 16: missing",
            "inbox, d1, copy of seq 1 for dora, applied 17: found a copy in period 1, wanted no copy for who was no member then (inbox holds what is visible)",
        ],
    );
}

#[test]
fn a_membership_is_compared_in_each_view() {
    check(
        |shelves| {
            of(&mut shelves.roaming, "d1").members.remove(&user("dora"));
        },
        &["roaming, d1, member dora, applied 16: missing"],
    );
    check(
        |shelves| {
            let members = &mut of(&mut shelves.sessions, "g1").members;
            members.get_mut(&user("bo")).unwrap().intervals[0].since = Seq::new(9);
        },
        &["sessions, g1, member bo, applied 0: intervals.0.since is 9, not 1"],
    );
}

#[test]
fn accepted_ids_are_compared_inside_the_window() {
    let last_piece = |shelves: &mut Shelves| {
        let ids = &mut of(&mut shelves.roaming, "g1").ids;
        let no = *ids.keys().next_back().unwrap();
        (no, ids.get(&no).cloned().unwrap())
    };
    check(
        |shelves| {
            let (no, mut ids) = last_piece(shelves);
            ids.pop();
            of(&mut shelves.roaming, "g1").ids.insert(no, ids);
        },
        &[
            "roaming, g1, event 00000000-0000-0001-0000-00000000000f in dedupe piece 5, applied 15: missing",
        ],
    );
    check(
        |shelves| {
            let (no, mut ids) = last_piece(shelves);
            ids[0].id = event_id(7);
            of(&mut shelves.roaming, "g1").ids.insert(no, ids);
        },
        &[
            r#"roaming, g1, event 00000000-0000-0000-0000-000000000007 in dedupe piece 5, applied 15: id is "00000000-0000-0000-0000-000000000007", not "00000000-0000-0001-0000-00000000000f""#,
        ],
    );
    check(
        |shelves| {
            let (no, mut ids) = last_piece(shelves);
            ids[0].offset = Offset::new(16);
            of(&mut shelves.roaming, "g1").ids.insert(no, ids);
        },
        &[
            "roaming, g1, event 00000000-0000-0001-0000-00000000000f in dedupe piece 5, applied 16: extra: the log never makes it",
            "roaming, g1, event 00000000-0000-0001-0000-00000000000f in dedupe piece 5, applied 15: missing",
        ],
    );
    check(
        |shelves| {
            let ids = &mut of(&mut shelves.roaming, "g1").ids;
            ids.insert(PieceNo::FIRST, Vec::new());
        },
        &[
            "roaming, g1, event 00000000-0000-0001-0000-000000000000 in dedupe piece 0, applied 0: missing",
            "roaming, g1, event 00000000-0000-0001-0000-000000000001 in dedupe piece 0, applied 1: missing",
            "roaming, g1, event 00000000-0000-0001-0000-000000000002 in dedupe piece 0, applied 2: missing",
        ],
    );
}

#[test]
fn blocks_are_compared_with_what_the_fold_made_of_them() {
    check(
        |shelves| {
            let pieces = &mut of(&mut shelves.sessions, "g1").pieces;
            pieces.remove(&BlockNo::new(1));
        },
        &["sessions, g1, block 1, applied 11: missing"],
    );
    check(
        |shelves| {
            let pieces = &mut of(&mut shelves.sessions, "g1").pieces;
            pieces.get_mut(&BlockNo::new(0)).unwrap().entries[1].recalled = None;
        },
        &["sessions, g1, block 0, applied 8: entries.1.recalled is null, not 8"],
    );
}

#[test]
fn a_checkpoint_of_another_log_is_told_by_the_record_it_rests_on() {
    let plant = |change: &dyn Fn(&mut tidemark_store::Checkpoint), wanted: &[&str]| {
        check(
            |shelves| {
                let shelf = shelves.inbox.as_mut().unwrap();
                change(shelf.checkpoint.as_mut().unwrap());
            },
            wanted,
        );
    };
    plant(
        &|it| it.last.as_mut().unwrap().fingerprint = Fingerprint::from_i64(1),
        &[
            "inbox, partition 0, checkpoint, applied 17: fingerprint is 0000000000000001, not d0c6dda45dbedbff",
        ],
    );
    plant(
        &|it| it.log_time = LogTime::from_millis(1),
        &["inbox, partition 0, checkpoint, applied 17: log_time is 1, not 1777636817000"],
    );
    plant(
        &|it| it.last.as_mut().unwrap().offset = Offset::new(11),
        &["inbox, partition 0, checkpoint, applied 11: last_offset is 11, not 17"],
    );
    plant(
        &|it| it.last = None,
        &["inbox, partition 0, checkpoint: last_offset is none, not 17"],
    );
    plant(
        &|it| it.next_offset = NextOffset::new(40),
        &["inbox, partition 0, checkpoint, applied 17: next_offset is 40, not at most 18"],
    );
    // A hole in the offsets, as a transaction's marker leaves one, lies before the checkpoint.
    plant(&|it| it.next_offset = NextOffset::new(18), &[]);
}

#[test]
fn a_view_that_is_behind_cannot_have_more_messages() {
    let log = chat();
    let mut shelves = at_rest(&log, rules());
    shelves.roaming = Some(folded(&log[..10], rules(), 4));
    assert_clean(&audit(&log, shelves, rules().log));

    let mut shelves = at_rest(&log, rules());
    shelves.roaming = Some(folded(&log[..10], rules(), 4));
    let head = of(&mut shelves.roaming, "g1").head.as_mut().unwrap();
    head.last_seq = Seq::new(11);
    let found = lines(&audit(&log, shelves, rules().log).differences);
    let disagree = found.iter().filter(|line| line.contains("all views agree"));
    assert_eq!(disagree.count(), 2, "{found:?}");
}
