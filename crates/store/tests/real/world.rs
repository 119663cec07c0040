//! A keyspace of a test's own, and short ways to say what stands in it.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, SystemTime},
};

use scylla::client::{session::Session, session_builder::SessionBuilder};
use tidemark_event::{ConversationId, EventId, LogTime, Offset, Partition, Seq, UserId};
use tidemark_fold::{
    Changes, DedupeWindow, GenerationSettings, Interval, LogSettings, Member, Message, Stored,
    View, ViewName,
};
use tidemark_store::{
    FoldVersion, Generation, GenerationNo, RecordedLog, SetupSettings, Store, StoreSettings,
    StoredView,
};
use tokio::sync::OnceCell;
use uuid::Uuid;

pub(crate) const PARTITION: Partition = Partition::new(3);
pub(crate) const FOLD: FoldVersion = FoldVersion::new(1);

/// Small, so that a short story crosses every bound.
pub(crate) fn small() -> GenerationSettings {
    GenerationSettings {
        bucket_seqs: 5,
        copy_limit: 4,
        fan_out_limit: 6,
        block_seqs: 4,
        piece_ids: 6,
        ..GenerationSettings::default()
    }
}

pub(crate) struct World {
    pub(crate) store: Store,
    /// The same servers without the store in between.
    pub(crate) raw: Session,
    pub(crate) keyspace: String,
}

impl World {
    /// Runs a test in a keyspace of its own that is not set up.
    pub(crate) async fn bare<F: Future<Output = ()>>(test: impl FnOnce(Arc<Self>) -> F) {
        let world = Arc::new(Self::connect(&settings()).await);
        test(Arc::clone(&world)).await;
        world
            .cql(&format!("DROP KEYSPACE IF EXISTS {}", world.keyspace))
            .await;
    }

    /// Runs a test in a keyspace of its own that is set up with [`small`] generations.
    pub(crate) async fn alone<F: Future<Output = ()>>(test: impl FnOnce(Arc<Self>) -> F) {
        Self::bare(|world| async move {
            world.store.setup(&asked()).await.unwrap();
            test(world).await;
        })
        .await;
    }

    /// A keyspace that is set up with [`small`] generations, once for all tests that ask for it and name their
    /// conversations and users differently. It is left behind.
    pub(crate) async fn shared() -> Self {
        static SETTINGS: OnceCell<StoreSettings> = OnceCell::const_new();
        let settings = SETTINGS.get_or_init(|| async {
            let settings = settings();
            let world = Self::connect(&settings).await;
            world.store.setup(&asked()).await.unwrap();
            settings
        });
        Self::connect(settings.await).await
    }

    async fn connect(settings: &StoreSettings) -> Self {
        Self {
            store: Store::connect(settings).await.unwrap(),
            raw: SessionBuilder::new()
                .known_nodes(&settings.contact_points)
                .build()
                .await
                .unwrap(),
            keyspace: settings.keyspace.clone(),
        }
    }

    /// A second connection to the same keyspace.
    pub(crate) async fn another_store(&self) -> Store {
        let settings = StoreSettings {
            keyspace: self.keyspace.clone(),
            ..settings()
        };
        Store::connect(&settings).await.unwrap()
    }

    pub(crate) async fn open<V: StoredView>(&self) -> Generation<V> {
        self.store.open(GenerationNo::FIRST, FOLD).await.unwrap()
    }

    pub(crate) async fn cql(&self, text: &str) {
        self.raw.query_unpaged(text, ()).await.unwrap();
    }
}

fn settings() -> StoreSettings {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let contact_points = std::env::var("TIDEMARK_CQL").expect("TIDEMARK_CQL names a server");
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    StoreSettings {
        contact_points: contact_points.split(',').map(str::to_owned).collect(),
        keyspace: format!("t{}_{number}", millis()),
        ..StoreSettings::default()
    }
}

pub(crate) fn asked() -> SetupSettings {
    SetupSettings {
        replication_factor: 1,
        log: RecordedLog {
            topic: "tidemark.events".to_owned(),
            topic_id: None,
            settings: LogSettings {
                partitions: 12,
                dedupe: DedupeWindow::default(),
            },
        },
        generations: ViewName::ALL
            .into_iter()
            .map(|view| (view, small()))
            .collect(),
        fold_version: FOLD,
    }
}

/// Milliseconds since 1970, by this machine's clock.
pub(crate) fn millis() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    since_1970.as_millis() as i64
}

pub(crate) fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

pub(crate) fn conversation(name: &str) -> ConversationId {
    ConversationId::new(name).unwrap()
}

pub(crate) fn seq(number: u64) -> Seq {
    Seq::new(number)
}

pub(crate) fn offset(number: i64) -> Offset {
    Offset::new(number)
}

pub(crate) fn event_id(number: u128) -> EventId {
    EventId::new(Uuid::from_u128(number))
}

/// A message by bo, folded at an offset.
pub(crate) fn message(number: u64, applied: i64, body: &str) -> Stored {
    Stored {
        applied: offset(applied),
        message: Message {
            seq: seq(number),
            event_id: event_id(u128::from(number)),
            sender: user("bo"),
            body: body.to_owned(),
            content_type: "text".to_owned(),
            mentions: Vec::new(),
            mention_all: false,
            silent: false,
            reply_to: None,
            edited_at: None,
            recalled: false,
            occurred_at: None,
            logged_at: LogTime::from_millis(millis()),
        },
    }
}

/// A member since seq 1, folded at an offset.
pub(crate) fn member(applied: i64) -> Member {
    Member {
        applied: offset(applied),
        intervals: vec![Interval {
            since: Seq::FIRST,
            joined: offset(applied),
            left: None,
        }],
        opened: None,
        cleared_to: Seq::ZERO,
        hidden: Default::default(),
    }
}

pub(crate) fn nothing<V: View>() -> Changes<V> {
    Changes {
        rows: Vec::new(),
        members: Vec::new(),
        ids: Vec::new(),
        pieces: Vec::new(),
        head: None,
        left: Vec::new(),
    }
}

/// Changes of one conversation, as the write steps take them.
pub(crate) fn changed<V: View>(
    name: &str,
    change: impl FnOnce(&mut Changes<V>),
) -> Vec<(ConversationId, Changes<V>)> {
    let mut changes = nothing();
    change(&mut changes);
    vec![(conversation(name), changes)]
}

/// Waits until `is_so`, at most 20 seconds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    for _ in 0..200 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("20 seconds have passed and still not: {what}");
}

/// Counts by key.
pub(crate) fn counted<K: Ord>(keys: impl IntoIterator<Item = K>) -> BTreeMap<K, usize> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

/// What servers have warned of since this was first called, in this process.
pub(crate) fn server_warnings() -> Vec<String> {
    static LOG: OnceLock<Arc<Mutex<Vec<String>>>> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&log);
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_ansi(false)
            .with_writer(move || Lines(Arc::clone(&into)))
            .init();
        log
    });
    let lines = log.lock().unwrap();
    let of_servers = lines.iter().filter(|line| line.contains("a server warns"));
    of_servers.cloned().collect()
}

struct Lines(Arc<Mutex<Vec<String>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let line = String::from_utf8_lossy(bytes).into_owned();
        self.0.lock().unwrap().push(line);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
