//! Reads that many callers share: equal ones at once are one, and what came of it may be kept a moment.
//!
//! A read shows at least what was there when it began. So every caller says since when it must have begun ([`Since`]);
//! what began earlier is not for them, however fresh it looks. Who reads one table by what another has said asks for
//! a read that began after the other had ended, or they could miss what the other promised.
//!
//! At most one read of a key is under way. Who needs a later one than that waits for it to end and shares the next
//! with all who came meanwhile: a thousand who ask for the same page at the same moment cost two reads, and nobody is
//! told of an older state than the one they asked at.

use std::{
    collections::HashMap,
    future::Future,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use tidemark_store::StoreError;
use tokio::time::Instant;

/// The earliest instant at which a read may have begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Since(Instant);

impl Since {
    /// Nothing that was read before this call will do.
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    /// What was read up to `age` ago will do.
    pub(crate) fn ago(age: Duration) -> Self {
        let now = Instant::now();
        Self(now.checked_sub(age).unwrap_or(now))
    }
}

/// What a read gave, and when it was made.
#[derive(Debug, Clone)]
pub(crate) struct Read<V> {
    /// The read had ended by then: what is read from now on is no older.
    pub(crate) ended: Since,
    pub(crate) value: V,
}

/// A failed read, which all who shared it are told of.
pub(crate) type Failed = Arc<StoreError>;

/// Reads of one kind, by key.
pub(crate) struct SharedReads<K, V> {
    /// The most keys that are remembered.
    capacity: usize,
    /// How long a read is worth remembering after it began; zero: not beyond its end.
    keep: Duration,
    keys: Mutex<HashMap<K, Flights<V>>>,
}

/// The reads of one key.
struct Flights<V> {
    current: Flight<V>,
    /// Begins once the current one has ended.
    next: Option<Flight<V>>,
}

/// A read, before, while and after it is made.
struct Flight<V> {
    /// Set when it begins.
    began: Arc<OnceLock<Since>>,
    outcome: Shared<BoxFuture<'static, Result<Read<V>, Failed>>>,
}

impl<V> Clone for Flight<V> {
    fn clone(&self) -> Self {
        Self {
            began: Arc::clone(&self.began),
            outcome: self.outcome.clone(),
        }
    }
}

impl<V: Clone + Send + Sync + 'static> Flight<V> {
    fn new<F>(after: Option<Self>, read: impl FnOnce() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<V, StoreError>> + Send + 'static,
    {
        let began = Arc::<OnceLock<Since>>::default();
        let begins = Arc::clone(&began);
        let outcome = async move {
            if let Some(earlier) = after {
                // Whatever came of it: it only has to be over.
                let _ = earlier.outcome.await;
            }
            begins.get_or_init(Since::now);
            match read().await {
                Ok(value) => Ok(Read {
                    ended: Since::now(),
                    value,
                }),
                Err(error) => Err(Arc::new(error)),
            }
        };
        Self {
            began,
            outcome: outcome.boxed().shared(),
        }
    }

    fn is_over(&self) -> bool {
        self.outcome.peek().is_some()
    }

    /// Whether it will do for somebody who needs a read since then. One that has not begun will begin late enough.
    fn serves(&self, since: Since) -> bool {
        let has_failed = matches!(self.outcome.peek(), Some(Err(_)));
        !has_failed && self.began.get().is_none_or(|began| *began >= since)
    }
}

impl<K, V> SharedReads<K, V>
where
    K: Eq + Hash + Clone,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) fn new(capacity: usize, keep: Duration) -> Self {
        Self {
            capacity,
            keep,
            keys: Mutex::default(),
        }
    }

    /// The value at `key`, by a read that began at `since` or later: `read`, unless an equal one is there.
    pub(crate) async fn get<F>(
        &self,
        key: K,
        since: Since,
        read: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Read<V>, Failed>
    where
        F: Future<Output = Result<V, StoreError>> + Send + 'static,
    {
        let flight = self.join(key.clone(), since, read);
        let outcome = flight.outcome.await;
        if self.keep.is_zero() {
            let mut keys = self.lock();
            if keys.get(&key).is_some_and(|flights| flights.are_over()) {
                keys.remove(&key);
            }
        }
        outcome
    }

    /// What is remembered at `key` of a read that began at `since` or later.
    pub(crate) fn peek(&self, key: &K, since: Since) -> Option<Read<V>> {
        let mut keys = self.lock();
        let flights = keys.get_mut(key)?;
        flights.advance();
        let current = &flights.current;
        let outcome = current.outcome.peek()?;
        outcome
            .as_ref()
            .ok()
            .filter(|_| current.serves(since))
            .cloned()
    }

    fn join<F>(&self, key: K, since: Since, read: impl FnOnce() -> F + Send + 'static) -> Flight<V>
    where
        F: Future<Output = Result<V, StoreError>> + Send + 'static,
    {
        let mut keys = self.lock();
        if let Some(flights) = keys.get_mut(&key) {
            return flights.join(since, read);
        }
        if keys.len() >= self.capacity {
            self.make_room(&mut keys);
        }
        let current = Flight::new(None, read);
        let flight = current.clone();
        keys.insert(
            key,
            Flights {
                current,
                next: None,
            },
        );
        flight
    }

    /// Forgets what is over and old; where nothing is, all that is over; and where nothing is that, everything: who
    /// shares a read holds it themselves.
    fn make_room(&self, keys: &mut HashMap<K, Flights<V>>) {
        let oldest = Since::ago(self.keep);
        keys.retain(|_, flights| !flights.are_over() || flights.current.serves(oldest));
        if keys.len() >= self.capacity {
            keys.retain(|_, flights| !flights.are_over());
        }
        if keys.len() >= self.capacity {
            keys.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Flights<V>>> {
        // Nothing is done while it is locked that could leave it half done.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: Clone + Send + Sync + 'static> Flights<V> {
    fn join<F>(&mut self, since: Since, read: impl FnOnce() -> F + Send + 'static) -> Flight<V>
    where
        F: Future<Output = Result<V, StoreError>> + Send + 'static,
    {
        self.advance();
        if self.current.serves(since) {
            return self.current.clone();
        }
        if self.current.is_over() {
            self.current = Flight::new(None, read);
            return self.current.clone();
        }
        let current = self.current.clone();
        self.next
            .get_or_insert_with(|| Flight::new(Some(current), read))
            .clone()
    }

    /// Lets the next read take the place of one that is over.
    fn advance(&mut self) {
        if self.current.is_over()
            && let Some(next) = self.next.take()
        {
            self.current = next;
        }
    }

    fn are_over(&self) -> bool {
        self.current.is_over() && self.next.as_ref().is_none_or(Flight::is_over)
    }
}

impl<K, V> std::fmt::Debug for SharedReads<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedReads").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;

    use super::*;

    const KEEP: Duration = Duration::from_secs(1);

    /// Counts how often it is read; each read takes 10 ms and gives its number, from 0.
    #[derive(Clone, Default)]
    struct Source(Arc<AtomicUsize>);

    impl Source {
        async fn read(self) -> Result<usize, StoreError> {
            let number = self.0.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok(number)
        }

        async fn get(&self, reads: &SharedReads<u8, usize>, key: u8, since: Since) -> Read<usize> {
            let source = self.clone();
            reads.get(key, since, || source.read()).await.unwrap()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn equal_reads_at_once_are_one() {
        let (reads, source) = (SharedReads::new(4, KEEP), Source::default());
        let since = Since::now();
        let all = join_all((0..1_000).map(|_| source.get(&reads, 1, since))).await;
        assert!(all.iter().all(|read| read.value == 0));
        assert_eq!(source.0.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_while_a_read_is_under_way_shares_the_next_one() {
        let (reads, source) = (SharedReads::new(4, Duration::ZERO), Source::default());
        let all = join_all((0..100_u64).map(|index| {
            let (reads, source) = (&reads, &source);
            async move {
                tokio::time::sleep(Duration::from_micros(index * 50)).await;
                source.get(reads, 1, Since::now()).await.value
            }
        }))
        .await;
        assert_eq!(all[0], 0);
        assert!(all[1..].iter().all(|number| *number == 1), "{all:?}");
        assert!(reads.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_remembered_read_is_not_for_those_who_need_a_later_one() {
        let (reads, source) = (SharedReads::new(4, KEEP), Source::default());
        let first = source.get(&reads, 1, Since::now()).await;
        tokio::time::advance(Duration::from_millis(100)).await;
        assert_eq!(
            reads.peek(&1, Since::ago(KEEP)).map(|read| read.value),
            Some(0)
        );
        let needs_later = Since::now();
        assert!(reads.peek(&1, needs_later).is_none());
        assert!(first.ended < needs_later);
        assert_eq!(source.get(&reads, 1, needs_later).await.value, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_remembered_than_have_room() {
        let (reads, source) = (SharedReads::new(4, KEEP), Source::default());
        for key in 0..10 {
            source.get(&reads, key, Since::now()).await;
            assert!(reads.lock().len() <= 4);
        }
    }
}
