//! Audits of a real log and a real store.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tidemark_audit::{
    AuditError, AuditSettings, LogError, LogReader, Progress, Report, Scope, Silent, audit,
};
use tidemark_event::{ConversationId, Offset, Partition, Seq};
use tidemark_fold::{Changes, View, ViewName, roaming::Roaming, sessions::Sessions};
use tidemark_store::Store;

use crate::{
    log::{append, append_in_transaction, append_value, events, kafka, make_anew},
    worker::{PARTITIONS, open, project, project_all, store},
};

async fn look(store: &Store, settings: &AuditSettings) -> Report {
    let (store, settings) = (store.clone(), settings.clone());
    // As a task of its own, where a command may leave it.
    let report = tokio::spawn(async move {
        let log = LogReader::new(kafka());
        audit(&log, &store, &settings, Arc::new(Silent)).await
    });
    report.await.unwrap().unwrap()
}

#[track_caller]
fn assert_clean(report: &Report) {
    assert!(report.is_clean(), "{report}");
}

fn one_row<V: View>(key: V::RowKey, row: V::Row) -> Changes<V> {
    Changes {
        rows: vec![(key, row)],
        members: Vec::new(),
        ids: Vec::new(),
        pieces: Vec::new(),
        head: None,
        left: Vec::new(),
    }
}

/// Adds up what it is told.
#[derive(Default)]
struct Told {
    stored: AtomicU64,
    read: AtomicU64,
    of: AtomicU64,
}

impl Progress for Told {
    fn stored(&self, read: u64) {
        self.stored.fetch_max(read, Ordering::Relaxed);
    }

    fn log(&self, read: u64, of: u64) {
        self.read.fetch_max(read, Ordering::Relaxed);
        self.of.fetch_max(of, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs TIDEMARK_KAFKA and TIDEMARK_CQL"]
async fn a_log_with_markers_and_garbage_is_read_to_its_end_and_its_views_are_clean() {
    make_anew(PARTITIONS).await;
    let store = store().await;
    append(&events("a", 1, 150)).await;
    let like = &events("a", 1, 1)[0];
    append_value(like, b"no event").await;
    append_in_transaction(&events("b", 2, 60), true).await;
    append_in_transaction(&events("c", 3, 20), false).await;
    project_all(&store).await;

    let told = Arc::new(Told::default());
    let log = LogReader::new(kafka()).with_stall_deadline(Duration::from_secs(20));
    let settings = AuditSettings::default();
    let report = audit(&log, &store, &settings, told.clone()).await.unwrap();
    println!("{report}");
    assert_clean(&report);
    assert_eq!(report.views.len(), 3);
    for view in &report.views {
        assert_eq!((view.records.read, view.records.undecodable), (211, 1));
        assert!(view.compared.rows > 10 && view.conversations > 3, "{view}");
    }
    assert!(told.stored.load(Ordering::Relaxed) > 300);
    assert_eq!(
        told.read.load(Ordering::Relaxed),
        told.of.load(Ordering::Relaxed)
    );

    // Partition by partition, and one view alone.
    let narrow = AuditSettings {
        views: [ViewName::Sessions].into(),
        partitions_per_pass: std::num::NonZeroUsize::MIN,
        partitions_at_once: std::num::NonZeroUsize::MIN,
        ..AuditSettings::default()
    };
    let alone = look(&store, &narrow).await;
    assert_clean(&alone);
    assert_eq!(alone.views[..], report.views[1..2]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs TIDEMARK_KAFKA and TIDEMARK_CQL"]
async fn what_is_planted_in_a_store_is_named() {
    make_anew(PARTITIONS).await;
    let store = store().await;
    append(&events("a", 5, 120)).await;
    project_all(&store).await;
    assert_clean(&look(&store, &AuditSettings::default()).await);

    let sessions = open::<Sessions>(&store).await;
    let heads = {
        use futures::TryStreamExt;
        let heads = sessions.scan_heads([tidemark_store::TokenRange::ALL]);
        heads.try_collect::<Vec<_>>().await.unwrap()
    };
    let (id, head) = heads
        .iter()
        .find(|(_, head)| head.last_seq > Seq::FIRST)
        .unwrap();
    let partition = tidemark_event::partition_of(id, PARTITIONS.try_into().unwrap());
    plant_session(&store, id, partition, head.applied).await;
    plant_message(&store, id, partition, head.last_seq, head.applied).await;

    let report = look(&store, &AuditSettings::default()).await;
    println!("{report}");
    let lines: Vec<String> = report.differences.iter().map(ToString::to_string).collect();
    let has = |text: &str| lines.iter().any(|line| line.contains(text));
    assert!(has(&format!("seq {}", head.last_seq.next())) && has("extra: the log never makes it"));
    assert!(has("session of"), "{lines:?}");
    let scope = Scope {
        conversation: Some(id.clone()),
        user: None,
    };
    let narrow = AuditSettings {
        scope,
        ..AuditSettings::default()
    };
    assert_eq!(look(&store, &narrow).await.differences, report.differences);
}

/// A member's session with a draft that nobody wrote.
async fn plant_session(store: &Store, id: &ConversationId, partition: Partition, newest: Offset) {
    use futures::TryStreamExt;
    let sessions = open::<Sessions>(store).await;
    let rows = sessions.scan_sessions([tidemark_store::TokenRange::ALL]);
    let rows = rows.try_collect::<Vec<_>>().await.unwrap();
    let mut row = rows
        .into_iter()
        .find(|row| row.conversation == *id)
        .unwrap();
    row.session.draft = "not mine".to_owned();
    row.session.applied = Offset::new(newest.get() + 1);
    let changes = [(id.clone(), one_row::<Sessions>(row.user, row.session))];
    sessions.write_rows(partition, &changes).await.unwrap();
}

/// The newest message once more, as the next one.
async fn plant_message(
    store: &Store,
    id: &ConversationId,
    partition: Partition,
    last: Seq,
    newest: Offset,
) {
    let roaming = open::<Roaming>(store).await;
    let order = tidemark_store::Order::Ascending;
    let found = roaming.messages(id, (last, last), 1, order).await.unwrap();
    let mut row = found.into_iter().next().unwrap();
    row.message.seq = last.next();
    row.applied = newest;
    let changes = [(id.clone(), one_row::<Roaming>(last.next(), row))];
    roaming.write_rows(partition, &changes).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs TIDEMARK_KAFKA and TIDEMARK_CQL"]
async fn audits_raise_no_false_alarm_beside_workers() {
    make_anew(PARTITIONS).await;
    let store = store().await;
    append(&events("z", 9, 50)).await;
    let (writer, reader) = (store.clone(), store.clone());
    let work = tokio::spawn(async move {
        for round in 0..12 {
            append(&events(&format!("r{round}"), round, 60)).await;
            append(&events("z", 100 + round, 30)).await;
            tokio::join!(
                project::<Roaming>(&writer),
                project::<Sessions>(&writer),
                project::<tidemark_fold::inbox::Inbox>(&writer),
            );
        }
    });
    let mut audits = 0;
    while !work.is_finished() || audits == 0 {
        let report = look(&reader, &AuditSettings::default()).await;
        assert_clean(&report);
        audits += 1;
    }
    work.await.unwrap();
    let report = look(&store, &AuditSettings::default()).await;
    println!("{report}\n{audits} audits");
    assert_clean(&report);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs TIDEMARK_KAFKA and TIDEMARK_CQL"]
async fn another_log_is_told_by_the_checkpoint_and_another_number_of_partitions_by_an_error() {
    make_anew(PARTITIONS).await;
    let store = store().await;
    append(&events("a", 5, 80)).await;
    project_all(&store).await;
    make_anew(PARTITIONS).await;
    append(&events("a", 5, 80)).await;
    let report = look(&store, &AuditSettings::default()).await;
    let first = report.differences[0].to_string();
    assert!(
        first.contains("checkpoint") && first.contains("fingerprint"),
        "{first}"
    );

    make_anew(PARTITIONS + 1).await;
    let log = LogReader::new(kafka());
    let failed = audit(&log, &store, &AuditSettings::default(), Arc::new(Silent)).await;
    assert!(matches!(
        failed,
        Err(AuditError::Log(LogError::OtherPartitions {
            found: 4,
            wanted: 3
        }))
    ));
}
