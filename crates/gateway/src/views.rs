//! The views as readers use them: of each its active generation, and how far it has come.
//!
//! A request takes a view once and keeps what it got, so it never reads a mix of two generations. Which generation is
//! active is asked again every second at most, by one request, while the others go on with what they have; when
//! another one is active, a gateway moves to it once it has reached where the last one was when the gateway noticed:
//! so nobody is answered an older state than before the cutover.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use tidemark_fold::{inbox::Inbox, roaming::Roaming, sessions::Sessions};
use tidemark_store::{FoldVersion, Generation, GenerationNo, OpenError, Store, StoredView};
use tokio::time::Instant;

use crate::{
    problem::{Answer, Kind, Problem, chain},
    reached::{Reached, ReadCheckpoints, Target},
    settings::Waits,
};

/// How long the store may take to say which generation is active, before a request goes on with what it has.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// All views.
#[derive(Debug)]
pub(crate) struct Views {
    pub(crate) roaming: Served<Roaming>,
    pub(crate) sessions: Served<Sessions>,
    pub(crate) inbox: Served<Inbox>,
}

/// A generation that is read, and how far it has come.
#[derive(Debug)]
pub(crate) struct Opened<V: StoredView> {
    pub(crate) generation: Generation<V>,
    pub(crate) reached: Reached,
}

impl<V: StoredView> std::ops::Deref for Opened<V> {
    type Target = Generation<V>;

    fn deref(&self) -> &Generation<V> {
        &self.generation
    }
}

/// One view, by its active generation.
#[derive(Debug)]
pub(crate) struct Served<V: StoredView> {
    store: Store,
    fold_version: FoldVersion,
    /// How long the active generation is taken as known.
    known_for: Duration,
    poll: Duration,
    current: Mutex<Option<Current<V>>>,
    /// Held by the one request that asks which generation is active.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Current<V: StoredView> {
    opened: Arc<Opened<V>>,
    asked: Instant,
    /// The generation to move to, once it is there.
    next: Option<Arc<Next<V>>>,
}

#[derive(Debug)]
struct Next<V: StoredView> {
    opened: Arc<Opened<V>>,
    /// Where the last generation was when this one was seen to be active.
    target: Target,
}

impl<V: StoredView> Clone for Current<V> {
    fn clone(&self) -> Self {
        Self {
            opened: Arc::clone(&self.opened),
            asked: self.asked,
            next: self.next.clone(),
        }
    }
}

impl Views {
    pub(crate) fn new(store: &Store, fold_version: FoldVersion, waits: &Waits) -> Self {
        Self {
            roaming: Served::new(store, fold_version, waits),
            sessions: Served::new(store, fold_version, waits),
            inbox: Served::new(store, fold_version, waits),
        }
    }
}

impl<V: StoredView> Served<V> {
    fn new(store: &Store, fold_version: FoldVersion, waits: &Waits) -> Self {
        Self {
            store: store.clone(),
            fold_version,
            known_for: waits.generation,
            poll: waits.poll,
            current: Mutex::new(None),
            asking: tokio::sync::Mutex::new(()),
        }
    }

    /// The active generation, as of a second ago at most, unless the store does not say.
    pub(crate) async fn get(&self) -> Answer<Arc<Opened<V>>> {
        let current = self.current();
        if let Some(current) = &current
            && current.asked.elapsed() < self.known_for
        {
            return Ok(Arc::clone(&current.opened));
        }
        let Some(current) = current else {
            return self.get_first().await;
        };
        // Whoever comes while another asks goes on with what there is.
        let Ok(_asking) = self.asking.try_lock() else {
            return Ok(current.opened);
        };
        let asked = tokio::time::timeout(ANSWERS_WITHIN, self.refresh(&current)).await;
        let next = match asked {
            Ok(Ok(next)) => next,
            Ok(Err(error)) => {
                let error = chain(&error);
                tracing::warn!(view = %V::NAME, error, "the active generation could not be asked for");
                current.next
            }
            Err(_) => {
                tracing::warn!(view = %V::NAME, "the active generation could not be asked for in time");
                current.next
            }
        };
        match next {
            Some(next) if self.is_there(&next).await => {
                Ok(self.set(Arc::clone(&next.opened), None))
            }
            next => Ok(self.set(current.opened, next)),
        }
    }

    async fn get_first(&self) -> Answer<Arc<Opened<V>>> {
        let _asking = self.asking.lock().await;
        if let Some(current) = self.current() {
            return Ok(current.opened);
        }
        let active = self.store.active_generation(V::NAME).await?;
        let no = active.ok_or(OpenError::NoLog).map_err(cannot_open)?;
        let opened = self.open(no).await.map_err(cannot_open)?;
        Ok(self.set(Arc::new(opened), None))
    }

    /// The generation to move to, if another one than `current` is active.
    async fn refresh(&self, current: &Current<V>) -> Result<Option<Arc<Next<V>>>, OpenError> {
        let Some(no) = self.store.active_generation(V::NAME).await? else {
            return Ok(None);
        };
        if no == current.opened.no() {
            return Ok(None);
        }
        if let Some(next) = current.next.as_ref().filter(|next| next.opened.no() == no) {
            return Ok(Some(Arc::clone(next)));
        }
        let opened = Arc::new(self.open(no).await?);
        let mut target = Target::default();
        for (partition, checkpoint) in current.opened.checkpoints().await? {
            target.add(partition, checkpoint.next_offset);
        }
        tracing::info!(view = %V::NAME, generation = %no, "another generation is active");
        Ok(Some(Arc::new(Next { opened, target })))
    }

    /// Whether a generation is where the last one was.
    async fn is_there(&self, next: &Next<V>) -> bool {
        match next.opened.checkpoints().await {
            Ok(checkpoints) => next.target.is_reached(&checkpoints),
            Err(error) => {
                tracing::warn!(view = %V::NAME, error = chain(&error), "the active generation could not be read");
                false
            }
        }
    }

    async fn open(&self, no: GenerationNo) -> Result<Opened<V>, OpenError> {
        let generation = self.store.open::<V>(no, self.fold_version).await?;
        let read: ReadCheckpoints = {
            let generation = generation.clone();
            Arc::new(move || {
                let generation = generation.clone();
                async move { generation.checkpoints().await }.boxed()
            })
        };
        Ok(Opened {
            generation,
            reached: Reached::new(read, self.poll),
        })
    }

    /// Notes that the active generation was asked for, and gives the one to use.
    fn set(&self, opened: Arc<Opened<V>>, next: Option<Arc<Next<V>>>) -> Arc<Opened<V>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current
            .insert(Current {
                opened,
                asked: Instant::now(),
                next,
            })
            .opened
            .clone()
    }

    fn current(&self) -> Option<Current<V>> {
        self.current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn cannot_open(error: OpenError) -> Problem {
    match error {
        OpenError::Store(error) => error.into(),
        OpenError::NoLog | OpenError::NoGeneration { .. } | OpenError::OtherFoldVersion { .. } => {
            tracing::error!(error = chain(&error), "a view cannot be opened");
            Problem::new(Kind::StoreUnavailable, "a view is not set up")
        }
    }
}
