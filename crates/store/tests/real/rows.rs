//! Rows, pieces and checkpoints: how they are read, which write wins, when copies expire, what is sent together.

use std::{collections::BTreeSet, num::NonZeroU32};

use futures::TryStreamExt;
use scylla::statement::batch::{Batch, BatchType};
use tidemark_event::{Fingerprint, History, Kind, LogTime, NextOffset, Offset, Partition, Seq};
use tidemark_fold::{
    AcceptedId, DedupeIndex, GenerationSettings, Head, Leaving, Need, PieceNo, Reason, Supply,
    inbox::{Inbox, InboxKey, InboxRow, Period, Place},
    roaming::Roaming,
    sessions::{Block, BlockNo, Entry, Mode, Newest, Session, Sessions, Tally},
};
use tidemark_store::{
    Checkpoint, GenerationNo, LastRecord, Order, Refusal, SetupSettings, StoreError, TokenRange,
    Written,
};

use crate::world::{
    FOLD, PARTITION, World, asked, changed, conversation, counted, event_id, eventually, member,
    message, millis, offset, seq, server_warnings, small, user,
};

pub(crate) fn head(applied: i64, last_seq: u64) -> Head<()> {
    Head {
        applied: offset(applied),
        fingerprint: Fingerprint::from_i64(-applied),
        log_time: LogTime::from_millis(1_000 + applied),
        last_seq: seq(last_seq),
        kind: Kind::Group,
        title: format!("as of {applied}"),
        history: History::FromJoin,
        creation: u64::MAX,
        members: 3,
        dedupe: DedupeIndex::default(),
        extra: (),
    }
}

fn session(applied: i64) -> Session {
    let mut shown = message(9, applied, "shown");
    shown.message.logged_at = LogTime::from_millis(5_000);
    Session {
        applied: offset(applied),
        mode: Mode::FannedOut,
        kind: Kind::Group,
        title: String::new(),
        last_seq: seq(9),
        newest: Some(Newest {
            message: shown.message.into(),
            is_whole: true,
        }),
        last_active: LogTime::from_millis(5_000),
        since: Seq::FIRST,
        read_seq: seq(4),
        tally: Tally {
            unread: 5,
            mention_count: 2,
            mentions: vec![seq(5), seq(7)],
            mentioned_all: None,
        },
        cleared_to: Seq::ZERO,
        hidden: BTreeSet::from([seq(2)]),
        peer_read_seq: Seq::ZERO,
        marked_unread: true,
        pinned: false,
        muted: true,
        draft: String::new(),
        members: 3,
        left: false,
        removed_at: Some(Seq::ZERO),
    }
}

pub(crate) fn checkpoint(next_offset: i64) -> Checkpoint {
    Checkpoint {
        next_offset: NextOffset::new(next_offset),
        last: Some(LastRecord {
            offset: Offset::new(next_offset - 1),
            fingerprint: Fingerprint::from_i64(next_offset),
        }),
        log_time: LogTime::from_millis(next_offset),
    }
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn messages_are_read_across_buckets_from_either_end_and_no_more_than_asked() {
    let world = World::shared().await;
    let roaming = world.open::<Roaming>().await;
    let name = conversation("buckets");
    let rows: Vec<_> = (1..=23)
        .map(|number| message(number, number as i64, "hi"))
        .collect();
    let changes = changed("buckets", |changes| {
        changes.rows = rows
            .iter()
            .map(|row| (row.message.seq, row.clone()))
            .collect();
    });
    let written = roaming.write_rows(PARTITION, &changes).await.unwrap();
    // Buckets of 5: 1–4, 5–9, 10–14, 15–19, 20–23.
    assert_eq!((written.requests, written.rows), (5, 23));

    let read = |from, to, limit, order| {
        let (roaming, name) = (roaming.clone(), name.clone());
        async move {
            let rows = roaming
                .messages(&name, (seq(from), seq(to)), limit, order)
                .await;
            rows.unwrap()
        }
    };
    let numbers = |rows: Vec<tidemark_fold::Stored>| -> Vec<u64> {
        rows.iter().map(|row| row.message.seq.get()).collect()
    };
    assert_eq!(read(1, 23, 100, Order::Ascending).await, rows);
    assert_eq!(
        numbers(read(3, 23, 4, Order::Ascending).await),
        [3, 4, 5, 6]
    );
    assert_eq!(
        numbers(read(1, 11, 4, Order::Descending).await),
        [11, 10, 9, 8]
    );
    assert_eq!(numbers(read(0, 2, 9, Order::Descending).await), [2, 1]);
    assert!(read(7, 6, 9, Order::Ascending).await.is_empty());
    assert!(read(1, 23, 0, Order::Ascending).await.is_empty());
    let other = conversation("buckets-2");
    let none = roaming
        .messages(&other, (seq(1), seq(9)), 9, Order::Ascending)
        .await;
    assert!(none.unwrap().is_empty());
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_slower_writer_loses_whoever_writes_last() {
    let world = World::shared().await;
    let roaming = world.open::<Roaming>().await;
    let name = conversation("slower");
    let quiet = Partition::new(11);
    let mut recalled = message(1, 50, "");
    recalled.message.recalled = true;
    recalled.message.edited_at = Some(LogTime::from_millis(7));
    let mut gone = member(50);
    gone.intervals[0].left = Some(Leaving {
        until: seq(1),
        at: offset(50),
    });
    let ahead = changed("slower", |changes| {
        changes.rows = vec![(seq(1), recalled.clone())];
        changes.members = vec![(user("bo"), gone.clone())];
        changes.head = Some(head(50, 1));
    });
    let behind = changed("slower", |changes| {
        changes.rows = vec![(seq(1), message(1, 20, "hello"))];
        changes.members = vec![(user("bo"), member(10))];
        changes.head = Some(head(20, 1));
    });
    for changes in [&behind, &ahead, &behind] {
        roaming.write_rows(PARTITION, changes).await.unwrap();
        roaming.write_pieces(changes).await.unwrap();
        roaming.write_heads(changes).await.unwrap();
    }
    for at in [checkpoint(21), checkpoint(51), checkpoint(21)] {
        roaming.write_checkpoint(quiet, &at).await.unwrap();
    }
    let rows = roaming
        .messages(&name, (seq(1), seq(1)), 1, Order::Ascending)
        .await
        .unwrap();
    assert_eq!(rows, [recalled]);
    assert_eq!(
        roaming.member(&name, &user("bo")).await.unwrap(),
        Some(gone)
    );
    assert_eq!(roaming.head(&name).await.unwrap(), Some(head(50, 1)));
    let found = roaming.checkpoint(quiet).await.unwrap();
    assert_eq!(found, Some(checkpoint(51)));
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn copies_expire_with_their_period_and_are_not_written_after_it() {
    World::bare(|world| async move {
        let brief = GenerationSettings {
            inbox_period_millis: 1_000,
            inbox_ttl_millis: 3_000,
            ..small()
        };
        let settings = SetupSettings {
            generations: [(tidemark_fold::ViewName::Inbox, brief)].into(),
            ..asked()
        };
        world.store.setup(&settings).await.unwrap();
        let inbox = world.open::<Inbox>().await;
        let (bo, name) = (user("bo"), conversation("g1"));
        let copy = message(1, 10, "soon gone");
        let period = Period::of(copy.message.logged_at, inbox.settings());
        let write = |period: Period, applied: i64| {
            let mut copy = copy.clone();
            copy.applied = offset(applied);
            let key = InboxKey::Copy {
                user: user("bo"),
                period,
                seq: seq(1),
            };
            let inbox = inbox.clone();
            async move {
                let changes = changed("g1", |changes| {
                    changes.rows = vec![(key, InboxRow::Copy(copy))];
                });
                inbox.write_rows(PARTITION, &changes).await.unwrap()
            }
        };
        let read = || async {
            inbox
                .copies(&bo, period, &name, (seq(1), seq(9)), 10)
                .await
                .unwrap()
        };
        assert_eq!(write(period, 10).await.rows, 1);
        assert_eq!(read().await, std::slice::from_ref(&copy));
        // Edited shortly before the end: lives no longer for it.
        assert_eq!(write(period, 11).await.rows, 1);
        eventually("the copy has expired", || async { read().await.is_empty() }).await;
        let late = millis() - period.expires_at(inbox.settings());
        assert!(
            (-1_500..3_000).contains(&late),
            "gone {late} ms after its period's end"
        );

        let left_out = Written {
            expired: 1,
            ..Written::default()
        };
        assert_eq!(write(Period::new(period.get() - 10), 12).await, left_out);
        assert_eq!(write(period, 13).await, left_out);
        assert!(read().await.is_empty());
        let loaded = inbox
            .load(
                PARTITION,
                vec![(
                    name.clone(),
                    Need::Row(InboxKey::Copy {
                        user: bo.clone(),
                        period,
                        seq: seq(1),
                    }),
                )],
            )
            .await
            .unwrap();
        assert!(
            matches!(loaded.as_slice(), [(_, Supply::Row(_, None))]),
            "{loaded:?}"
        );
    })
    .await;
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_deleted_dedupe_piece_stays_deleted_for_all_that_was_before_its_checkpoint() {
    let world = World::shared().await;
    let roaming = world.open::<Roaming>().await;
    let name = conversation("deleted");
    let id = |at: i64| AcceptedId {
        id: event_id(7),
        offset: offset(at),
        ordinal: 0,
        log_time: LogTime::from_millis(at),
        seq: (at % 2 == 0).then_some(seq(1)),
    };
    let write = |at: i64| {
        let roaming = roaming.clone();
        async move {
            let changes = changed("deleted", |changes| {
                changes.ids = vec![(PieceNo::FIRST, id(at))]
            });
            roaming.write_pieces(&changes).await.unwrap();
        }
    };
    let read = || async {
        let pieces = [PieceNo::FIRST, PieceNo::new(1)];
        roaming.accepted(&name, &pieces, event_id(7)).await.unwrap()
    };
    write(4).await;
    write(5).await;
    assert_eq!(read().await, [id(4), id(5)]);
    let piece = [(name.clone(), PieceNo::FIRST)];
    // At the checkpoint after record 5.
    roaming
        .delete_dedupe_pieces(&piece, &checkpoint(6))
        .await
        .unwrap();
    assert!(read().await.is_empty());
    write(5).await;
    assert!(
        read().await.is_empty(),
        "a slower worker brings nothing back"
    );
    write(8).await;
    assert_eq!(read().await, [id(8)]);
    // A slower worker's delete takes nothing newer.
    roaming
        .delete_dedupe_pieces(&piece, &checkpoint(7))
        .await
        .unwrap();
    assert_eq!(read().await, [id(8)]);
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn what_is_beyond_the_bounds_is_split_and_no_server_warns() {
    let world = World::shared().await;
    assert!(server_warnings().is_empty());
    let roaming = world.open::<Roaming>().await;
    let sessions = world.open::<Sessions>().await;
    let name = conversation("bounds");
    // A thousand join at once: ten requests, one after the other.
    let users: Vec<_> = (0..1_000)
        .map(|number| user(&format!("user-{number:04}")))
        .collect();
    let joined = changed::<Roaming>("bounds", |changes| {
        changes.members = users.iter().map(|user| (user.clone(), member(5))).collect();
    });
    let written = roaming.write_pieces(&joined).await.unwrap();
    assert_eq!((written.requests, written.rows), (10, 1_000));

    // One user's sessions in 300 conversations of the partition: bounded by bytes before rows.
    let mut drafted = session(5);
    drafted.draft = "d".repeat(1_000);
    let batch: Vec<_> = (0..300)
        .flat_map(|number| {
            changed::<Sessions>(&format!("c{number}"), |changes| {
                changes.rows = vec![(user("bounds-bo"), drafted.clone())];
            })
        })
        .collect();
    let written = sessions.write_rows(PARTITION, &batch).await.unwrap();
    assert_eq!(written.rows, 300);
    assert!((10..=20).contains(&written.requests), "{written:?}");
    assert_eq!(
        sessions
            .sessions_of(&user("bounds-bo"))
            .await
            .unwrap()
            .len(),
        300
    );

    // The largest bodies there are, five to a bucket: each alone.
    let large = changed::<Roaming>("bounds-2", |changes| {
        let body = "b".repeat(64 << 10);
        changes.rows = (5..10)
            .map(|number| (seq(number), message(number, 9, &body)))
            .collect();
    });
    let written = roaming.write_rows(PARTITION, &large).await.unwrap();
    assert_eq!((written.requests, written.rows), (5, 5));

    // Keys of one partition share a read, a hundred at most.
    let needs: Vec<_> = users
        .iter()
        .map(|user| (name.clone(), Need::Member(user.clone())))
        .collect();
    let loaded = roaming.load(PARTITION, needs).await.unwrap();
    let known = loaded.iter().filter(
        |(_, supply)| matches!(supply, Supply::Member(_, Some(found)) if *found == member(5)),
    );
    assert_eq!(known.count(), 1_000);
    assert_eq!(server_warnings(), Vec::<String>::new());

    // Servers do warn, of what the store never sends …
    let mut across = Batch::new(BatchType::Unlogged);
    for number in 0..30 {
        across.append_statement(&*format!(
            "INSERT INTO {}.roaming_1_messages (conversation_id, bucket, seq, body) VALUES ('w{number}', 0, 1, '{}')",
            world.keyspace,
            "b".repeat(1_000),
        ));
    }
    let answer = world.raw.batch(&across, vec![(); 30]).await.unwrap();
    assert!(answer.warnings().count() > 0);
    // … and what they warn of is heard: here of a read over tombstones.
    let mut deletes = Batch::new(BatchType::Unlogged);
    for number in 0..1_100 {
        deletes.append_statement(&*format!(
            "DELETE FROM {}.roaming_1_members WHERE conversation_id = 'bounds-3' AND user_id = 'u{number}'",
            world.keyspace,
        ));
    }
    world.raw.batch(&deletes, vec![(); 1_100]).await.unwrap();
    let needs = vec![(conversation("bounds-3"), Need::AllMembers)];
    roaming.load(PARTITION, needs).await.unwrap();
    assert_ne!(server_warnings(), Vec::<String>::new());
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn the_present_members_are_paged_over_those_who_left() {
    let world = World::shared().await;
    let roaming = world.open::<Roaming>().await;
    let name = conversation("paged");
    let changes = changed::<Roaming>("paged", |changes| {
        for number in 0..40 {
            let mut member = member(5);
            if number % 4 != 0 {
                member.intervals[0].left = Some(Leaving {
                    until: seq(1),
                    at: offset(5),
                });
            }
            changes
                .members
                .push((user(&format!("u{number:02}")), member));
        }
    });
    roaming.write_pieces(&changes).await.unwrap();
    let mut names = Vec::new();
    let mut after = None;
    loop {
        let page = roaming
            .members_page(&name, after.as_ref(), 3)
            .await
            .unwrap();
        names.extend(page.iter().map(|(user, _)| user.as_str().to_owned()));
        match page.last() {
            Some((last, _)) if page.len() == 3 => after = Some(last.clone()),
            _ => break,
        }
    }
    let expected: Vec<String> = (0..10)
        .map(|number| format!("u{:02}", number * 4))
        .collect();
    assert_eq!(names, expected);
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn blocks_are_found_across_their_groups() {
    let world = World::shared().await;
    let sessions = world.open::<Sessions>().await;
    let name = conversation("blocks");
    let block = |number: u64| Block {
        applied: offset(number as i64),
        no: BlockNo::new(number),
        first: seq(1 + number * 4),
        users: vec![user("bo")],
        entries: vec![Entry {
            sent: offset(1),
            sender: 0,
            counts: true,
            mention_all: false,
            mentions: vec![],
            recalled: Some(offset(2)),
        }],
    };
    let changes = changed::<Sessions>("blocks", |changes| {
        changes.pieces = (0..200)
            .map(|number| (BlockNo::new(number), block(number)))
            .collect();
    });
    let written = sessions.write_pieces(&changes).await.unwrap();
    assert_eq!((written.requests, written.rows), (4, 200));
    let covering = BlockNo::covering(seq(239), seq(900), 4);
    let found = sessions.blocks(&name, covering).await.unwrap();
    assert_eq!(found, (59..200).map(block).collect::<Vec<_>>());
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_users_copies_and_places_are_read_in_pages_and_alone() {
    let world = World::shared().await;
    let inbox = world.open::<Inbox>().await;
    let bo = user("paged-bo");
    let period = Period::of(LogTime::from_millis(millis()), inbox.settings());
    let place = Place {
        applied: offset(3),
        member: member(3),
        devices: [(tidemark_event::DeviceId::new("phone").unwrap(), seq(2))].into(),
        copied_to: Some(Seq::ZERO),
    };
    for name in ["a", "b", "ä"] {
        let changes = changed::<Inbox>(name, |changes| {
            for number in 1..=5 {
                let key = InboxKey::Copy {
                    user: bo.clone(),
                    period,
                    seq: seq(number),
                };
                changes
                    .rows
                    .push((key, InboxRow::Copy(message(number, 4, name))));
            }
            let key = InboxKey::Place { user: bo.clone() };
            changes.rows.push((key, InboxRow::Place(place.clone())));
        });
        let written = inbox.write_rows(PARTITION, &changes).await.unwrap();
        assert_eq!((written.requests, written.rows), (2, 6));
    }
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let from = after.as_ref().map(|(name, seq)| (name, *seq));
        let page = inbox.copies_of(&bo, period, from, 4).await.unwrap();
        seen.extend(page.iter().map(|copy| {
            (
                copy.conversation.as_str().to_owned(),
                copy.stored.message.seq.get(),
            )
        }));
        match page.last() {
            Some(last) => after = Some((last.conversation.clone(), last.stored.message.seq)),
            None => break,
        }
    }
    let expected: Vec<(String, u64)> = ["a", "b", "ä"]
        .into_iter()
        .flat_map(|name| (1..=5).map(move |number| (name.to_owned(), number)))
        .collect();
    assert_eq!(seen, expected);
    let name = conversation("b");
    let some = inbox
        .copies(&bo, period, &name, (seq(2), seq(9)), 3)
        .await
        .unwrap();
    assert_eq!(some.len(), 3);
    assert_eq!(some[0].message.seq, seq(2));
    assert_eq!(inbox.places_of(&bo).await.unwrap().len(), 3);
    assert_eq!(
        inbox.place(&bo, PARTITION, &name).await.unwrap(),
        Some(place)
    );
    assert_eq!(
        inbox.place(&user("cy"), PARTITION, &name).await.unwrap(),
        None
    );
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_refusal_is_told_by_its_event_id() {
    let world = World::shared().await;
    let roaming = world.open::<Roaming>().await;
    let refusal = |at: i64, reason| Refusal {
        conversation: conversation("refusal"),
        event_id: event_id(7),
        offset: offset(at),
        reason,
        log_time: LogTime::from_millis(at),
    };
    let refusals = [
        refusal(5, Reason::NotAMember),
        refusal(9, Reason::NoSuchSeq),
    ];
    let written = roaming.write_refusals(&refusals).await.unwrap();
    assert_eq!((written.requests, written.rows), (1, 2));
    let found = roaming
        .refusals(&conversation("refusal"), event_id(7))
        .await
        .unwrap();
    assert_eq!(found, refusals);
    assert!(
        roaming
            .refusals(&conversation("refusal"), event_id(8))
            .await
            .unwrap()
            .is_empty()
    );
    let text = format!(
        "SELECT TTL(reason) FROM {}.roaming_1_refusals WHERE conversation_id = 'refusal'",
        world.keyspace
    );
    let rows = world
        .raw
        .query_unpaged(text, ())
        .await
        .unwrap()
        .into_rows_result()
        .unwrap();
    let (ttl,): (i32,) = rows.first_row().unwrap();
    let two_days = 2 * 24 * 60 * 60;
    assert!((two_days - 60..=two_days).contains(&ttl), "{ttl}");
}

#[track_caller]
fn each_once<K: Ord>(rows: usize, keys: impl Iterator<Item = K>) {
    let counts = counted(keys);
    assert_eq!(counts.len(), rows);
    assert!(counts.values().all(|count| *count == 1));
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn a_scan_in_parts_gives_every_row_once() {
    World::alone(|world| async move {
        let roaming = world.open::<Roaming>().await;
        let sessions = world.open::<Sessions>().await;
        let inbox = world.open::<Inbox>().await;
        let names: Vec<String> = (0..150).map(|number| format!("c{number}")).collect();
        let now = LogTime::from_millis(millis());
        let period = Period::of(now, inbox.settings());
        for name in &names {
            let changes = changed::<Roaming>(name, |changes| {
                changes.rows = (1..=7)
                    .map(|number| (seq(number), message(number, 9, name)))
                    .collect();
                changes.members = vec![(user("bo"), member(9)), (user("cy"), member(9))];
                changes.head = Some(head(9, 7));
            });
            roaming.write_rows(PARTITION, &changes).await.unwrap();
            roaming.write_pieces(&changes).await.unwrap();
            roaming.write_heads(&changes).await.unwrap();
            let changes = changed::<Sessions>(name, |changes| {
                changes.rows = vec![(user("bo"), session(9)), (user(name), session(9))];
            });
            sessions.write_rows(PARTITION, &changes).await.unwrap();
            let place = Place {
                applied: offset(9),
                member: member(9),
                devices: Default::default(),
                copied_to: None,
            };
            let changes = changed::<Inbox>(name, |changes| {
                let copy = InboxKey::Copy {
                    user: user(name),
                    period,
                    seq: seq(1),
                };
                changes.rows = vec![
                    (InboxKey::Place { user: user(name) }, InboxRow::Place(place)),
                    (copy, InboxRow::Copy(message(1, 9, name))),
                ];
            });
            inbox.write_rows(PARTITION, &changes).await.unwrap();
        }
        let ranges = || TokenRange::split(NonZeroU32::new(7).unwrap());
        let heads: Vec<_> = roaming.scan_heads(ranges()).try_collect().await.unwrap();
        each_once(150, heads.iter().map(|(name, _)| name));
        let messages: Vec<_> = roaming.scan_messages(ranges()).try_collect().await.unwrap();
        let keys = messages
            .iter()
            .map(|row| (&row.conversation, row.stored.message.seq));
        each_once(1_050, keys);
        let all = [TokenRange::ALL];
        let members: Vec<_> = roaming.scan_members(all).try_collect().await.unwrap();
        each_once(
            300,
            members.iter().map(|row| (&row.conversation, &row.user)),
        );
        let rows: Vec<_> = sessions
            .scan_sessions(ranges())
            .try_collect()
            .await
            .unwrap();
        assert!(
            rows.iter()
                .all(|row| row.partition == PARTITION && row.session == session(9))
        );
        each_once(300, rows.iter().map(|row| (&row.user, &row.conversation)));
        let places: Vec<_> = inbox.scan_places(ranges()).try_collect().await.unwrap();
        each_once(150, places.iter().map(|row| (&row.user, &row.conversation)));
        let copies: Vec<_> = inbox.scan_copies(ranges()).try_collect().await.unwrap();
        assert!(copies.iter().all(|row| row.period == period));
        each_once(
            150,
            copies.iter().map(|row| (&row.user, row.stored.message.seq)),
        );
        let many: Vec<_> = names.iter().map(|name| conversation(name)).collect();
        assert_eq!(roaming.heads(&many).await.unwrap().len(), 150);
    })
    .await;
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn damage_is_an_error_that_names_table_row_and_column() {
    let world = World::shared().await;
    let roaming = world.open::<Roaming>().await;
    let changes = changed::<Roaming>("damage", |changes| {
        changes.rows = vec![(seq(1), message(1, 9, "hello"))];
        changes.head = Some(head(9, 1));
    });
    roaming.write_rows(PARTITION, &changes).await.unwrap();
    roaming.write_heads(&changes).await.unwrap();
    let keyspace = &world.keyspace;
    let name = conversation("damage");
    world
        .cql(&format!(
            "UPDATE {keyspace}.roaming_1_heads SET last_seq = -4 WHERE conversation_id = 'damage'"
        ))
        .await;
    match roaming.head(&name).await {
        Err(StoreError::Damaged {
            table, key, column, ..
        }) => {
            assert_eq!(table, format!("{keyspace}.roaming_1_heads"));
            assert_eq!((key.as_str(), column), ("damage", "last_seq"));
        }
        other => panic!("{other:?}"),
    }
    world
        .cql(&format!(
            "DELETE sender FROM {keyspace}.roaming_1_messages \
                 WHERE conversation_id = 'damage' AND bucket = 0 AND seq = 1"
        ))
        .await;
    let error = roaming
        .messages(&name, (seq(1), seq(1)), 1, Order::Ascending)
        .await
        .unwrap_err();
    assert!(!error.is_transient());
    let chain = format!("{error}: {:?}", std::error::Error::source(&error));
    assert!(
        chain.contains("roaming_1_messages, damage, bucket 0") && chain.contains("sender"),
        "{chain}"
    );
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn work_with_the_store_may_be_spawned() {
    let world = World::shared().await;
    let store = world.store.clone();
    let done = tokio::spawn(async move {
        let sessions = store
            .open::<Sessions>(GenerationNo::FIRST, FOLD)
            .await
            .unwrap();
        let name = conversation("spawned");
        let changes = changed::<Sessions>("spawned", |changes| {
            changes.rows = vec![(user("spawned-bo"), session(9))];
        });
        sessions.write_rows(PARTITION, &changes).await.unwrap();
        sessions.write_pieces(&changes).await.unwrap();
        sessions.write_heads(&changes).await.unwrap();
        sessions
            .write_checkpoint(Partition::new(10), &checkpoint(10))
            .await
            .unwrap();
        let needs = vec![
            (name.clone(), Need::Row(user("spawned-bo"))),
            (name.clone(), Need::Head),
        ];
        let loaded = sessions.load(PARTITION, needs).await.unwrap();
        assert!(
            matches!(loaded[0].1, Supply::Head(None)),
            "heads come first"
        );
        let scanned: Vec<_> = sessions
            .scan_sessions([TokenRange::ALL])
            .try_collect()
            .await
            .unwrap();
        assert!(!scanned.is_empty());
        sessions
            .session(&user("spawned-bo"), PARTITION, &name)
            .await
            .unwrap()
    });
    assert_eq!(done.await.unwrap().map(|row| row.applied), Some(offset(9)));
}
