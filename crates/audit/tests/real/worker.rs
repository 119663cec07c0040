//! A worker that folds the log into a real store, plain and slow: every batch begins with nothing in memory.

use std::collections::BTreeMap;

use tidemark_event::{ConversationId, LogTime, NextOffset, Partition};
use tidemark_fold::{
    Changes, Conversation, FOLD_VERSION, Stop, ViewName, inbox::Inbox, roaming::Roaming,
    sessions::Sessions,
};
use tidemark_fold::{DedupeWindow, GenerationSettings, LogSettings};
use tidemark_store::{
    Checkpoint, FoldVersion, Generation, GenerationNo, LastRecord, RecordedLog, SetupSettings,
    Store, StoreSettings, StoredView,
};

use crate::log::{self, Read};

pub(crate) const PARTITIONS: u16 = 3;

/// A keyspace of a test's own, set up with limits that small groups pass.
pub(crate) async fn store() -> Store {
    let contact_points = std::env::var("TIDEMARK_CQL").expect("TIDEMARK_CQL names a server");
    let store = Store::connect(&StoreSettings {
        contact_points: contact_points.split(',').map(str::to_owned).collect(),
        keyspace: format!("audit_{}", uuid::Uuid::now_v7().simple()),
        ..StoreSettings::default()
    })
    .await
    .unwrap();
    let generation = GenerationSettings {
        bucket_seqs: 5,
        copy_limit: 3,
        fan_out_limit: 4,
        block_seqs: 4,
        piece_ids: 3,
        ..GenerationSettings::default()
    };
    let settings = SetupSettings {
        replication_factor: 1,
        log: RecordedLog {
            topic: tidemark_event::LOG_TOPIC.to_owned(),
            topic_id: None,
            settings: LogSettings {
                partitions: PARTITIONS,
                dedupe: DedupeWindow {
                    millis: 60_000,
                    ids: 8,
                },
            },
        },
        generations: ViewName::ALL.map(|view| (view, generation)).into(),
        fold_version: FoldVersion::new(FOLD_VERSION),
    };
    store.setup(&settings).await.unwrap();
    store
}

/// Brings all views to the log's end.
pub(crate) async fn project_all(store: &Store) {
    project::<Roaming>(store).await;
    project::<Sessions>(store).await;
    project::<Inbox>(store).await;
}

/// Brings one view to the log's end.
pub(crate) async fn project<V: StoredView>(store: &Store) {
    let generation = open::<V>(store).await;
    for number in 0..i32::from(PARTITIONS) {
        let partition = Partition::new(number);
        let stored = generation.checkpoint(partition).await.unwrap();
        let (from, log_time) = stored.map_or((NextOffset::START, LogTime::START), |stored| {
            (stored.next_offset, stored.log_time)
        });
        let read = move || log::read(partition, from, log_time);
        let records = tokio::task::spawn_blocking(read).await.unwrap();
        for batch in records.chunks(7) {
            fold(&generation, partition, batch).await;
        }
    }
}

pub(crate) async fn open<V: StoredView>(store: &Store) -> Generation<V> {
    let ours = FoldVersion::new(FOLD_VERSION);
    store.open(GenerationNo::FIRST, ours).await.unwrap()
}

async fn fold<V: StoredView>(generation: &Generation<V>, partition: Partition, batch: &[Read]) {
    let first = batch[0].offset;
    let mut conversations = BTreeMap::<ConversationId, Conversation<V>>::new();
    for record in batch.iter().filter_map(|read| read.record.as_ref()) {
        let id = &record.event.conversation;
        let conversation = conversations.entry(id.clone()).or_default();
        loop {
            match conversation.fold(record, generation.log_settings(), generation.settings()) {
                Ok(_) => break,
                Err(Stop::Needs(needs)) => {
                    let needs = needs.into_iter().map(|need| (id.clone(), need)).collect();
                    for (_, supply) in generation.load(partition, needs).await.unwrap() {
                        conversation.supply(supply, first);
                    }
                }
                Err(stop) => panic!("{stop}"),
            }
        }
    }
    let changes: Vec<(ConversationId, Changes<V>)> = conversations
        .into_iter()
        .map(|(id, mut conversation)| (id, conversation.take_changes()))
        .collect();
    let last = &batch[batch.len() - 1];
    let checkpoint = Checkpoint {
        next_offset: NextOffset::after(last.offset),
        last: Some(LastRecord {
            offset: last.offset,
            fingerprint: last.fingerprint,
        }),
        log_time: last.log_time,
    };
    generation.write_rows(partition, &changes).await.unwrap();
    generation.write_pieces(&changes).await.unwrap();
    generation.write_heads(&changes).await.unwrap();
    let written = generation.write_checkpoint(partition, &checkpoint);
    written.await.unwrap();
    let left = changes
        .iter()
        .flat_map(|(id, changes)| changes.left.iter().map(move |no| (id.clone(), *no)));
    let left: Vec<_> = left.collect();
    let deleted = generation.delete_dedupe_pieces(&left, &checkpoint);
    deleted.await.unwrap();
}
