//! The store: one session with the servers, and what is recorded about log and generations.

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use tidemark_event::Partition;
use tidemark_fold::ViewName;
use tokio::sync::OnceCell;

use crate::{
    Checkpoint, ConnectError, FoldVersion, GenerationNo, GenerationState, RecordedGeneration,
    RecordedLog, StoreSettings, checkpoints::Checkpoints, connect, error::StoreError,
    generations::Generations, link::Link, log::Logs, schema::Names, servers::Servers,
};

/// Why a generation could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No log is recorded: `setup` has not run.
    #[error("no log is recorded in the store: run `tidemark setup`")]
    NoLog,
    /// There is no such generation.
    #[error("{view} has no generation {no}: `tidemark views` lists those there are")]
    NoGeneration {
        /// The view.
        view: ViewName,
        /// The number asked for.
        no: GenerationNo,
    },
    /// Another fold builds it.
    #[error(
        "{view} generation {no} is built by fold version {built_by}, this release folds by {ours}: \
        keep the release that builds it running, or rebuild the view"
    )]
    OtherFoldVersion {
        /// The view.
        view: ViewName,
        /// The generation.
        no: GenerationNo,
        /// The version that it is recorded with.
        built_by: FoldVersion,
        /// The version of the caller.
        ours: FoldVersion,
    },
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What became of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// The generation asked for is the active one.
    Active,
    /// Another one is: somebody else was faster, or the caller's idea was old.
    Other(Option<GenerationNo>),
}

/// The store. A clone shares the session.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    keyspace: String,
    datacenter: Option<String>,
    link: Link,
    /// Prepared when first asked for: before `setup` there are no such tables.
    catalog: OnceCell<Catalog>,
}

/// The statements of the tables that are there once in a keyspace.
#[derive(Debug)]
pub(crate) struct Catalog {
    pub(crate) logs: Logs,
    pub(crate) generations: Generations,
    pub(crate) checkpoints: Checkpoints,
}

impl Store {
    /// Connects to the servers. The keyspace need not be there yet.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(settings: &StoreSettings) -> Result<Self, ConnectError> {
        let session = connect::session(settings).await?;
        Ok(Self(Arc::new(Inner {
            keyspace: settings.keyspace.clone(),
            datacenter: settings.datacenter.clone(),
            link: Link::new(Servers::Driver(Box::new(session)), settings.max_in_flight),
            catalog: OnceCell::new(),
        })))
    }

    /// A store in memory, reached by a wire that a simulation drives.
    #[cfg(feature = "double")]
    pub fn over(
        cluster: &crate::double::Cluster,
        keyspace: &str,
        wire: Arc<dyn crate::double::Wire>,
        max_in_flight: usize,
    ) -> Self {
        let servers = Servers::Double(crate::double::Client {
            cluster: cluster.clone(),
            wire,
        });
        Self(Arc::new(Inner {
            keyspace: keyspace.to_owned(),
            datacenter: None,
            link: Link::new(servers, max_in_flight),
            catalog: OnceCell::new(),
        }))
    }

    /// The keyspace that holds everything.
    pub fn keyspace(&self) -> &str {
        &self.0.keyspace
    }

    pub(crate) fn datacenter(&self) -> Option<&str> {
        self.0.datacenter.as_deref()
    }

    pub(crate) fn link(&self) -> &Link {
        &self.0.link
    }

    pub(crate) async fn catalog(&self) -> Result<&Catalog, StoreError> {
        self.0
            .catalog
            .get_or_try_init(|| async {
                let (link, keyspace) = (self.link(), self.keyspace());
                Ok(Catalog {
                    logs: Logs::prepare(link, keyspace).await?,
                    generations: Generations::prepare(link, keyspace).await?,
                    checkpoints: Checkpoints::prepare(link, keyspace).await?,
                })
            })
            .await
    }

    /// Whether the servers answer a read of what is recorded here, at LOCAL_QUORUM.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.log_settings().await.map(drop)
    }

    /// The log that is recorded; none before `setup`, be it that there are no tables yet.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn log_settings(&self) -> Result<Option<RecordedLog>, StoreError> {
        let catalog = match self.catalog().await {
            Err(error) if error.is_of_a_missing_table() => return Ok(None),
            catalog => catalog?,
        };
        let logs = catalog.logs.read(self.link()).await?;
        Ok(logs.into_iter().next())
    }

    /// Every generation of a view there ever was, oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn generations(&self, view: ViewName) -> Result<Vec<RecordedGeneration>, StoreError> {
        let generations = &self.catalog().await?.generations;
        generations.read(self.link(), view).await
    }

    /// The generation of a view that readers use, if `setup` has run.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn active_generation(
        &self,
        view: ViewName,
    ) -> Result<Option<GenerationNo>, StoreError> {
        let generations = &self.catalog().await?.generations;
        generations.read_active(self.link(), view).await
    }

    /// Makes `to` the active generation of a view, where `from` is: one conditional write, which one caller wins.
    ///
    /// # Errors
    /// [`StoreError`]: it may have become active or not. To ask again tells.
    pub async fn activate(
        &self,
        view: ViewName,
        from: Option<GenerationNo>,
        to: GenerationNo,
    ) -> Result<Activation, StoreError> {
        let generations = &self.catalog().await?.generations;
        if generations.activate(self.link(), view, from, to).await? {
            return Ok(Activation::Active);
        }
        match generations.read_active(self.link(), view).await? {
            Some(active) if active == to => Ok(Activation::Active),
            other => Ok(Activation::Other(other)),
        }
    }

    /// Changes what is recorded as happening to a generation, where `from` is. Gives whether it is `to` now.
    ///
    /// # Errors
    /// [`StoreError`]: it may have changed or not. To ask again tells.
    pub async fn change_generation_state(
        &self,
        view: ViewName,
        no: GenerationNo,
        from: GenerationState,
        to: GenerationState,
    ) -> Result<bool, StoreError> {
        let generations = &self.catalog().await?.generations;
        let link = self.link();
        if generations.change_state(link, (view, no), from, to).await? {
            return Ok(true);
        }
        let recorded = generations.read(link, view).await?;
        Ok(recorded
            .iter()
            .any(|generation| generation.no == no && generation.state == to))
    }

    /// How far a generation of a view has come, in every partition of the log it has begun with. It need not be one
    /// of the caller's fold version.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn checkpoints(
        &self,
        view: ViewName,
        no: GenerationNo,
    ) -> Result<BTreeMap<Partition, Checkpoint>, StoreError> {
        let checkpoints = &self.catalog().await?.checkpoints;
        checkpoints.read_all(self.link(), (view, no)).await
    }

    pub(crate) fn names(&self, view: ViewName, no: GenerationNo) -> Names {
        Names::new(self.keyspace(), view, no)
    }
}

/// Milliseconds since 1970 UTC, by this machine's clock. Decides how long copies live, and nothing else.
pub(crate) fn now() -> i64 {
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX)
}
