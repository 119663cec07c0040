//! Starts a worker for the active generation of a view, once the store can be asked for it.

use tidemark_fold::{FOLD_VERSION, ViewName};
use tidemark_store::{
    FoldVersion, Generation, GenerationNo, OpenError, Store, StoreError, StoredView,
};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    DeadLetterError, DeadLetterTopic, KeepRefusals, Worker, WorkerError,
    projection::describe,
    retry::{Attempts, Pause},
    settings::WorkerSettings,
    status::Status,
};

/// Why a view cannot be projected.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No generation of the view is active: `setup` has not run.
    #[error("view {view} has no active generation: run `tidemark setup`")]
    NoGeneration {
        /// The view.
        view: ViewName,
    },
    /// The store refused to tell which generation is active.
    #[error("cannot read which generation of {view} is active")]
    Active {
        /// The view.
        view: ViewName,
        /// Why.
        source: StoreError,
    },
    /// The generation cannot be worked on by this release.
    #[error("cannot open view {view}")]
    Open {
        /// The view.
        view: ViewName,
        /// Why.
        source: OpenError,
    },
    /// Dead letters could not be sent.
    #[error(transparent)]
    DeadLetters(#[from] DeadLetterError),
    /// The worker ended by itself.
    #[error(transparent)]
    Worker(#[from] WorkerError),
}

/// Runs a worker for the active generation of a view until `shutdown`. Waits for a store that is away.
///
/// # Errors
/// [`StartError`]: the worker cannot start, or cannot go on.
pub async fn project<V: StoredView + KeepRefusals>(
    settings: WorkerSettings,
    store: &Store,
    status: Status,
    shutdown: CancellationToken,
) -> Result<(), StartError> {
    let opened = tokio::select! {
        () = shutdown.cancelled() => return Ok(()),
        opened = open_active::<V>(store) => opened,
    };
    let generation = opened?;
    let dead_letters = DeadLetterTopic::of(V::NAME, &settings.kafka)?;
    let group = group_of(V::NAME, generation.no());
    info!(view = %V::NAME, generation = %generation.no(), "projecting");
    let worker = Worker::new(settings, group, generation, dead_letters, status);
    worker.run::<V>(shutdown).await?;
    Ok(())
}

/// The consumer group of a view generation: every generation reads the log for itself.
fn group_of(view: ViewName, generation: GenerationNo) -> String {
    format!("tidemark.{view}.{generation}")
}

async fn open_active<V: StoredView>(store: &Store) -> Result<Generation<V>, StartError> {
    let view = V::NAME;
    let (mut pause, attempts) = (Pause::default(), Attempts::default());
    loop {
        let error = match store.active_generation(view).await {
            Ok(Some(no)) => match store.open::<V>(no, FoldVersion::new(FOLD_VERSION)).await {
                Ok(generation) => return Ok(generation),
                Err(OpenError::Store(error)) if error.is_transient() => error,
                Err(source) => return Err(StartError::Open { view, source }),
            },
            Ok(None) => return Err(StartError::NoGeneration { view }),
            Err(error) if error.is_transient() => error,
            Err(source) => return Err(StartError::Active { view, source }),
        };
        tracing::warn!(%view, error = describe(&error), "the store did not answer, trying again");
        pause.wait(&attempts).await;
    }
}
