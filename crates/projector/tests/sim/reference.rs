//! An undisturbed run: every record folded alone, by the production code, each request served at once.
//!
//! It says, for each record, which rows are written and with what. A disturbed run writes nothing else, whatever its
//! batches, crashes and zombies: two writes of one row with one timestamp are the same bytes (rules 1, 3 and 5). That
//! what it ends with is right is not its own word: it is held against the naive model.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use tidemark_event::{ConversationId, Offset, Partition};
use tidemark_fold::{FOLD_VERSION, ViewName};
use tidemark_model::generate::Cast;
use tidemark_projector::{
    Attempts, DeadLetter, DeadLetterError, DeadLetters, KeepRefusals, Projection, Resume,
};
use tidemark_proof::Rules;
use tidemark_store::{
    FoldVersion, Generation, GenerationNo, RecordedLog, SetupSettings, Store, StoredView,
    double::{self, Cluster, Request, RowKey, RowWrite, Wire},
};

use crate::{
    process::KEYSPACE,
    shelf::{SimView, shelf_of},
    workload::{PARTITIONS, PartitionLog, Workload},
};

/// What an undisturbed run wrote.
pub(crate) struct Reference {
    /// The store before it.
    pub(crate) empty: Cluster,
    /// The store after it.
    pub(crate) full: Cluster,
    /// Every write of a row, by its timestamp, and a digest of its values.
    pub(crate) writes: HashMap<(RowKey, i64), u64>,
    /// Dedupe pieces it deleted, and the timestamps of that.
    pub(crate) deletes: HashMap<RowKey, i64>,
    pub(crate) partitions: Vec<PartitionTrace>,
    /// Whose head a row is.
    pub(crate) heads: HashMap<RowKey, (usize, ConversationId)>,
}

/// What each record of a partition led to, in order.
#[derive(Default)]
pub(crate) struct PartitionTrace {
    pub(crate) records: Vec<RecordTrace>,
}

/// What one record led to.
pub(crate) struct RecordTrace {
    pub(crate) offset: Offset,
    /// None for a record that nobody can decode.
    pub(crate) conversation: Option<ConversationId>,
    /// Rows and pieces.
    pub(crate) writes: Vec<(RowKey, i64)>,
    pub(crate) head: Option<(RowKey, i64)>,
    pub(crate) is_dead_letter: bool,
}

/// Whether a table holds heads.
pub(crate) fn is_heads(table: &str) -> bool {
    table.ends_with("_heads")
}

/// Whether a table holds checkpoints.
pub(crate) fn is_checkpoints(table: &str) -> bool {
    table == "checkpoints"
}

/// The rules that simulated views are built by.
pub(crate) fn rules() -> Rules {
    let mut rules = Rules::of(&Cast::SMALL.settings, Cast::SMALL.fan_out_limit);
    rules.log.partitions = PARTITIONS;
    rules
}

impl Reference {
    /// Folds the whole log, and panics where the naive model says otherwise.
    pub(crate) fn of<V: SimView>(workload: &Workload) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let cluster = Cluster::new();
            let wire = Arc::new(Recorder {
                cluster: cluster.clone(),
                writes: Mutex::default(),
            });
            let store = Store::over(&cluster, KEYSPACE, wire.clone(), 256);
            set_up(&store).await;
            let version = FoldVersion::new(FOLD_VERSION);
            let generation: Generation<V> = store.open(GenerationNo::FIRST, version).await.unwrap();
            let empty = cluster.copy();
            let mut reference = Self {
                empty,
                full: cluster.clone(),
                writes: HashMap::new(),
                deletes: HashMap::new(),
                partitions: Vec::new(),
                heads: HashMap::new(),
            };
            wire.take();
            for log in &workload.partitions {
                let trace = reference.fold(log, &generation, &wire).await;
                reference.partitions.push(trace);
            }
            for log in &workload.partitions {
                let shelf = shelf_of(&generation, log).await;
                let users = Cast::SMALL.users();
                tidemark_proof::check(&shelf, &log.model, &users, &rules().generation);
            }
            reference
        })
    }

    async fn fold<V: StoredView + KeepRefusals>(
        &mut self,
        log: &PartitionLog,
        generation: &Generation<V>,
        wire: &Recorder,
    ) -> PartitionTrace {
        let letters = Letters::default();
        let resume = Resume::plan(log.partition, None, Offset::new(0), log.end).unwrap();
        let mut projection = Projection::new(
            log.partition,
            resume.checkpoint,
            generation.clone(),
            letters.clone(),
        )
        .with_checkpoint_interval(Duration::ZERO);
        let attempts = Attempts::seeded(0);
        let conversations: BTreeMap<Offset, &ConversationId> = log
            .logged
            .iter()
            .map(|logged| (logged.offset, &logged.event.conversation))
            .collect();
        let mut trace = PartitionTrace::default();
        for record in &log.records {
            let folding = projection.fold(vec![record.clone()], false, &attempts);
            folding.await.unwrap();
            let mut traced = RecordTrace {
                offset: record.offset,
                conversation: conversations.get(&record.offset).map(|id| (*id).clone()),
                writes: Vec::new(),
                head: None,
                is_dead_letter: letters.0.lock().unwrap().contains(&record.offset),
            };
            for write in wire.take() {
                self.note(log.partition, write, &mut traced);
            }
            trace.records.push(traced);
        }
        projection.skip_hole(log.end, &attempts).await.unwrap();
        wire.take();
        assert_eq!(
            *letters.0.lock().unwrap(),
            log.dead_letters(),
            "dead letters of an undisturbed run"
        );
        trace
    }

    fn note(&mut self, partition: Partition, write: RowWrite, traced: &mut RecordTrace) {
        let RowWrite {
            key,
            timestamp,
            digest,
            is_delete,
            ..
        } = write;
        if is_delete {
            self.deletes.insert(key, timestamp);
            return;
        }
        if is_checkpoints(key.table()) {
            return;
        }
        if is_heads(key.table()) {
            traced.head = Some((key.clone(), timestamp));
            let conversation = traced.conversation.clone().unwrap();
            self.heads.insert(
                key.clone(),
                (crate::workload::index(partition), conversation),
            );
        } else {
            traced.writes.push((key.clone(), timestamp));
        }
        let before = self.writes.insert((key, timestamp), digest);
        assert!(
            before.is_none_or(|before| before == digest),
            "an undisturbed run writes a row twice with one timestamp, and otherwise the second time"
        );
    }
}

/// Makes the tables, and records the log and the generations.
async fn set_up(store: &Store) {
    let rules = rules();
    let settings = SetupSettings {
        replication_factor: 1,
        log: RecordedLog {
            topic: "tidemark.events".to_owned(),
            topic_id: None,
            settings: rules.log,
        },
        generations: ViewName::ALL.map(|view| (view, rules.generation)).into(),
        fold_version: FoldVersion::new(FOLD_VERSION),
    };
    store.setup(&settings).await.unwrap();
}

/// A wire that serves at once and keeps what was written.
struct Recorder {
    cluster: Cluster,
    writes: Mutex<Vec<RowWrite>>,
}

impl Recorder {
    fn take(&self) -> Vec<RowWrite> {
        std::mem::take(&mut self.writes.lock().unwrap())
    }
}

impl Wire for Recorder {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<double::Answer, double::Lost>> {
        if request.is_write() {
            self.writes.lock().unwrap().extend(request.rows());
        }
        let answer = request.apply(&self.cluster);
        async move { Ok(answer) }.boxed()
    }
}

/// A dead-letter topic that takes all.
#[derive(Clone, Default)]
struct Letters(Arc<Mutex<BTreeSet<Offset>>>);

impl DeadLetters for Letters {
    async fn send(&self, letters: &[DeadLetter]) -> Result<(), DeadLetterError> {
        let offsets = letters.iter().map(|letter| letter.record.offset);
        self.0.lock().unwrap().extend(offsets);
        Ok(())
    }
}
