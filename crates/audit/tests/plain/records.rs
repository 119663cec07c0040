//! What the log's own oddities come to: holes, garbage, unknown schemas, records in the wrong partition; and what a
//! narrower scope leaves out.

use std::num::NonZeroU16;

use tidemark_audit::{FoldError, Misplaced, PartitionAudit, Scope, Shelves};
use tidemark_event::{LogTime, NextOffset, Offset, Partition, partition_of};
use tidemark_model::{
    Logged,
    story::{conversation, group, sent, story, user},
};
use tidemark_store::{Checkpoint, LastRecord};

use crate::world::{
    Bytes, PARTITION, assert_clean, at_rest, audit, audit_bytes, audit_of, end_of, lines, of, rules,
};

/// Offsets 2, 5 and 9 hold no records.
fn chat() -> Vec<Logged> {
    story([
        group(["anna", "bo"]),
        sent("anna"),
        sent("bo").offset(3),
        sent("bo"),
        group(["anna", "cem"]).to("g2").offset(6),
        sent("cem").to("g2").times(2),
        sent("anna").offset(10),
    ])
}

fn bytes(log: &[Logged]) -> Vec<Bytes> {
    log.iter().map(Bytes::of).collect()
}

fn garbage(offset: i64, value: &[u8]) -> Bytes {
    Bytes {
        offset: Offset::new(offset),
        append_time: 5,
        key: b"g1".to_vec(),
        value: value.to_vec(),
    }
}

/// A header as events have it, of a schema that nobody wrote.
const UNKNOWN: [u8; 12] = [0xc3, 0x01, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0];

fn set_checkpoints(shelves: &mut Shelves, checkpoint: Checkpoint) {
    shelves.roaming.as_mut().unwrap().checkpoint = Some(checkpoint);
    shelves.sessions.as_mut().unwrap().checkpoint = Some(checkpoint);
    shelves.inbox.as_mut().unwrap().checkpoint = Some(checkpoint);
}

#[test]
fn offsets_without_records_are_nothing_to_tell_of() {
    let report = audit(&chat(), at_rest(&chat(), rules()), rules().log);
    assert_clean(&report);
}

#[test]
fn an_undecodable_record_is_counted_and_a_checkpoint_may_rest_on_it() {
    let log = chat();
    let mut records = bytes(&log);
    let last = garbage(11, b"no event");
    records.push(last.clone());
    let mut shelves = at_rest(&log, rules());
    set_checkpoints(
        &mut shelves,
        Checkpoint {
            next_offset: NextOffset::new(12),
            last: Some(LastRecord {
                offset: Offset::new(11),
                fingerprint: last.fingerprint(),
            }),
            log_time: log[log.len() - 1].log_time,
        },
    );
    let end = NextOffset::new(12);
    let report = audit_bytes(&records, end, shelves, rules().log, &Scope::default());
    assert_clean(&report);
    assert!(
        report
            .views
            .iter()
            .all(|view| view.records.undecodable == 1)
    );
    assert!(report.views.iter().all(|view| view.records.read == 9));
}

#[test]
fn a_partition_ends_at_a_record_of_an_unknown_schema() {
    let log = chat();
    let mut records = bytes(&log);
    let folded_last = records[6].fingerprint();
    records.insert(7, garbage(9, &UNKNOWN));
    // Workers of this release have stopped there; one of the next has gone on after the checkpoint was read.
    let mut shelves = at_rest(&log, rules());
    set_checkpoints(
        &mut shelves,
        Checkpoint {
            next_offset: NextOffset::new(9),
            last: Some(LastRecord {
                offset: Offset::new(8),
                fingerprint: folded_last,
            }),
            log_time: log[6].log_time,
        },
    );
    let report = audit_bytes(
        &records,
        end_of(&log),
        shelves,
        rules().log,
        &Scope::default(),
    );
    assert_clean(&report);
    assert_eq!(
        report.unknown.map(|unknown| unknown.offset),
        Some(Offset::new(9))
    );
}

#[test]
fn a_view_beyond_a_record_of_an_unknown_schema_cannot_be_audited() {
    let log = chat();
    let shelves = at_rest(&log, rules());
    let mut audit = PartitionAudit::new(PARTITION, rules().log, shelves, &Scope::default(), 10);
    let failed = audit.fold(&garbage(2, &UNKNOWN).raw());
    let Err(FoldError::UnknownSchema { offset, .. }) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(offset, Offset::new(2));
}

#[test]
fn records_in_another_partition_than_their_key_says_are_told_once_and_not_folded() {
    let mut log_settings = rules().log;
    log_settings.partitions = 2;
    let partitions = NonZeroU16::new(2).unwrap();
    let name = |partition: i32| {
        let names = (1..).map(|number| format!("c{number}"));
        let mut of = names.filter(|name| {
            partition_of(&conversation(name), partitions) == Partition::new(partition)
        });
        of.next().unwrap()
    };
    let (here, elsewhere) = (name(0), name(1));
    let right = story([group(["anna"]).to(&here), sent("anna").to(&here)]);
    let mut log = right.clone();
    log.extend(story([
        group(["bo"]).to(&elsewhere).offset(2),
        sent("bo").to(&elsewhere),
    ]));
    let shelves = at_rest(&right, rules());
    let report = audit(&log, shelves, log_settings);
    assert_eq!(
        lines(&report.differences),
        [format!(
            "roaming, partition 0, conversation {elsewhere}, the record at offset 2, applied 2: found 0, wanted \
             partition 1 (everything stands where it is looked for, once)"
        )]
    );
}

#[test]
fn a_row_that_no_reader_finds_is_told() {
    let mut shelves = at_rest(&chat(), rules());
    shelves
        .sessions
        .as_mut()
        .unwrap()
        .misplaced
        .push(Misplaced {
            conversation: conversation("g1"),
            key: "session of anna".to_owned(),
            applied: Offset::new(3),
            wanted: "log partition 0".to_owned(),
            found: "5".to_owned(),
        });
    let report = audit(&chat(), shelves, rules().log);
    assert_eq!(
        lines(&report.differences),
        [
            "sessions, partition 0, conversation g1, session of anna, applied 3: found 5, wanted log partition 0 \
             (everything stands where it is looked for, once)"
        ]
    );
}

/// Something wrong in each of two conversations, of a user each, and in a head.
fn damaged() -> Shelves {
    let mut shelves = at_rest(&chat(), rules());
    for (name, whose) in [("g1", "anna"), ("g2", "cem")] {
        let rows = &mut of(&mut shelves.sessions, name).rows;
        rows.get_mut(&user(whose)).unwrap().pinned = true;
    }
    let head = of(&mut shelves.sessions, "g1").head.as_mut().unwrap();
    head.log_time = LogTime::from_millis(1);
    shelves
}

#[track_caller]
fn check_scope(conversation_name: Option<&str>, user_name: Option<&str>, wanted: &[&str]) {
    let scope = Scope {
        conversation: conversation_name.map(conversation),
        user: user_name.map(user),
    };
    let report = audit_of(&chat(), damaged(), rules().log, &scope);
    let found = lines(&report.differences);
    let found: Vec<&str> = found
        .iter()
        .map(|line| {
            line.strip_prefix("sessions, partition 0, conversation ")
                .unwrap()
        })
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn a_scope_leaves_out_other_conversations_and_users() {
    let head = "g1, head, applied 10: log_time is 1, not 1777636807000";
    let anna = "g1, session of anna, applied 10: pinned is true, not false";
    let cem = "g2, session of cem, applied 8: pinned is true, not false";
    check_scope(None, None, &[head, anna, cem]);
    check_scope(Some("g1"), None, &[head, anna]);
    check_scope(None, Some("cem"), &[cem]);
    check_scope(Some("g1"), Some("anna"), &[anna]);
    check_scope(Some("g2"), Some("anna"), &[]);
    check_scope(Some("none"), None, &[]);
}
