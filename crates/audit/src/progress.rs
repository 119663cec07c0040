//! How far an audit has come, for whoever waits for it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tidemark_event::NextOffset;

/// Is told how far an audit has come. Called often and from several threads: it is not to block.
pub trait Progress: Send + Sync {
    /// So many stored rows, pieces and heads have been read in all.
    fn stored(&self, read: u64) {
        let _ = read;
    }

    /// So many of the log's `of` offsets have been passed, in all partitions together. `of` may grow as the log does.
    fn log(&self, read: u64, of: u64) {
        let _ = (read, of);
    }
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// Adds up what the parts of an audit have read.
#[derive(Clone)]
pub(crate) struct Meter(Arc<Counts>);

struct Counts {
    progress: Arc<dyn Progress>,
    stored: AtomicU64,
    read: AtomicU64,
    of: AtomicU64,
}

impl Meter {
    pub(crate) fn new(progress: Arc<dyn Progress>) -> Self {
        Self(Arc::new(Counts {
            progress,
            stored: AtomicU64::new(0),
            read: AtomicU64::new(0),
            of: AtomicU64::new(0),
        }))
    }

    pub(crate) fn add_stored(&self, rows: u64) {
        let counts = &*self.0;
        let stored = counts.stored.fetch_add(rows, Ordering::Relaxed) + rows;
        counts.progress.stored(stored);
    }

    /// A partition that was known up to `from` is known up to `to`.
    pub(crate) fn add_length(&self, from: NextOffset, to: NextOffset) {
        self.0.of.fetch_add(length(from, to), Ordering::Relaxed);
        self.add_read(to, to);
    }

    /// A partition that was read up to `from` is read up to `to`.
    pub(crate) fn add_read(&self, from: NextOffset, to: NextOffset) {
        let (counts, more) = (&*self.0, length(from, to));
        let read = counts.read.fetch_add(more, Ordering::Relaxed) + more;
        counts.progress.log(read, counts.of.load(Ordering::Relaxed));
    }
}

/// How many offsets there are from `from` up to `to`, which is not one of them.
fn length(from: NextOffset, to: NextOffset) -> u64 {
    u64::try_from(to.get() - from.get()).unwrap_or(0)
}
