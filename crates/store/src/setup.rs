//! Makes keyspace and tables, and records what log and views are built with; makes and drops generations.
//!
//! Safe to repeat, and to run twice at once: tables are made IF NOT EXISTS by one server that every set-up picks alike,
//! so that two never make one table under two ids; what is recorded is written by conditional writes, and whoever comes
//! second lives with what the first has recorded, or is refused where it asks for another log. Two set-ups that each
//! see another server as down may still pick differently; then one of them fails, and repeating it mends.

use std::{collections::BTreeMap, sync::Arc};

use scylla::{
    client::{execution_profile::ExecutionProfileHandle, session::Session},
    policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy},
};
use tidemark_fold::{GenerationSettings, ViewName};

use crate::{
    FoldVersion, GenerationNo, GenerationState, RecordedGeneration, RecordedLog, Store,
    error::StoreError, schema,
};

/// What the store is set up for.
#[derive(Debug, Clone)]
pub struct SetupSettings {
    /// On how many servers (of the store's datacentre, where one is set) each row is kept. Used where the keyspace is
    /// made, and left alone where it is there.
    pub replication_factor: u16,
    /// The log.
    pub log: RecordedLog,
    /// What the first generation of each view is built with; the default for a view that is not here.
    pub generations: BTreeMap<ViewName, GenerationSettings>,
    /// The fold that builds them.
    pub fold_version: FoldVersion,
}

/// What is recorded once the store is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The log.
    pub log: RecordedLog,
    /// The active generation of each view. Where its settings are not those that were asked for, a rebuild makes them
    /// so.
    pub active: BTreeMap<ViewName, RecordedGeneration>,
}

/// Why the store could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The store is set up for another log.
    #[error(
        "the keyspace {keyspace} is set up for a log with {setting} {recorded}, not {asked}: it never changes under a \
        log; use another keyspace, or the recorded value"
    )]
    OtherLog {
        /// The keyspace.
        keyspace: String,
        /// What differs.
        setting: &'static str,
        /// As it is recorded.
        recorded: String,
        /// As it was asked for.
        asked: String,
    },
    /// A setting that cannot be.
    #[error("{setting} is out of range")]
    Setting {
        /// Which one.
        setting: &'static str,
    },
    /// What is active is not among the generations, or is dropped.
    #[error("{view} generation {no} is active, but no such generation is in use")]
    NotRecorded {
        /// The view.
        view: ViewName,
        /// The active generation.
        no: GenerationNo,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a generation could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Its number is, or was, that of one that is built otherwise.
    #[error("{view} generation {no} has been made before, with other settings or state")]
    Taken {
        /// The view.
        view: ViewName,
        /// The number.
        no: GenerationNo,
    },
    /// A setting that cannot be.
    #[error("{setting} is out of range")]
    Setting {
        /// Which one.
        setting: &'static str,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a generation could not be dropped.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    /// Readers use it.
    #[error("{view} generation {no} is the active one: cut over to another first")]
    Active {
        /// The view.
        view: ViewName,
        /// The generation.
        no: GenerationNo,
    },
    /// It is not marked as about to be dropped, so somebody may begin to use it.
    #[error("{view} generation {no} is not marked as dropping")]
    NotMarked {
        /// The view.
        view: ViewName,
        /// The generation.
        no: GenerationNo,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Store {
    /// Makes the keyspace and its tables where they are not there, records the log and the first generation of each
    /// view, and makes that active.
    ///
    /// # Errors
    /// [`SetupError`]. What was done stays done; to call again goes on from there.
    pub async fn setup(&self, settings: &SetupSettings) -> Result<Recorded, SetupError> {
        check(settings).map_err(|setting| SetupError::Setting { setting })?;
        self.create_log_tables(settings).await?;
        let log = self.record_log(&settings.log).await?;
        let mut new = Vec::new();
        for view in ViewName::ALL {
            if self.active_generation(view).await?.is_none() {
                let first = RecordedGeneration {
                    no: GenerationNo::FIRST,
                    fold_version: settings.fold_version,
                    settings: settings.generations.get(&view).copied().unwrap_or_default(),
                    state: GenerationState::Built,
                };
                self.record_generation(view, &first).await?;
                new.push((view, GenerationNo::FIRST));
            }
        }
        self.create_tables(&new).await?;
        for (view, no) in new {
            self.activate(view, None, no).await?;
        }
        let mut active = BTreeMap::new();
        for view in ViewName::ALL {
            active.insert(view, self.recorded_active(view).await?);
        }
        Ok(Recorded { log, active })
    }

    /// Makes and records another generation of a view, for a rebuild. Safe to repeat.
    ///
    /// # Errors
    /// [`CreateError`]. What was done stays done; to call again goes on from there.
    pub async fn create_generation(
        &self,
        view: ViewName,
        generation: &RecordedGeneration,
    ) -> Result<(), CreateError> {
        check_generation(&generation.settings)
            .map_err(|setting| CreateError::Setting { setting })?;
        let no = generation.no;
        self.record_generation(view, generation).await?;
        if !self.generations(view).await?.contains(generation) {
            return Err(CreateError::Taken { view, no });
        }
        self.create_tables(&[(view, no)]).await?;
        Ok(())
    }

    /// Drops the tables of a generation and forgets its checkpoints. It must be recorded as
    /// [`GenerationState::Dropping`], and workers and readers that had it open have left it. Safe to repeat.
    ///
    /// # Errors
    /// [`DropError`]. What was done stays done; to call again goes on from there.
    pub async fn drop_generation(&self, view: ViewName, no: GenerationNo) -> Result<(), DropError> {
        if self.active_generation(view).await? == Some(no) {
            return Err(DropError::Active { view, no });
        }
        let recorded = self.generations(view).await?;
        let state = recorded.iter().find(|it| it.no == no).map(|it| it.state);
        match state {
            Some(GenerationState::Dropping | GenerationState::Dropped) => {}
            Some(GenerationState::Building | GenerationState::Built) | None => {
                return Err(DropError::NotMarked { view, no });
            }
        }
        let tables = self.names(view, no).tables();
        let drops = tables
            .iter()
            .map(|table| format!("DROP TABLE IF EXISTS {table}"));
        self.change_schema(drops).await?;
        let catalog = self.catalog().await?;
        catalog.checkpoints.delete(self.link(), (view, no)).await?;
        let (dropping, dropped) = (GenerationState::Dropping, GenerationState::Dropped);
        self.change_generation_state(view, no, dropping, dropped)
            .await?;
        Ok(())
    }

    async fn create_log_tables(&self, settings: &SetupSettings) -> Result<(), StoreError> {
        self.refresh().await?;
        let state = self.link().session().map(Session::get_cluster_state);
        let keyspace = state
            .as_ref()
            .and_then(|state| state.get_keyspace(self.keyspace()));
        let mut statements = Vec::new();
        // An administrator may have made it for a role that may not.
        if keyspace.is_none() {
            let replication = replication(self.datacenter(), settings.replication_factor);
            statements.push(format!(
                "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {replication}",
                self.keyspace()
            ));
        }
        let is_there = |table: &&str| keyspace.is_some_and(|it| it.tables.contains_key(*table));
        if !schema::LOG_TABLES.iter().all(is_there) {
            statements.extend(schema::log_statements(self.keyspace()));
        }
        self.change_schema(statements).await
    }

    async fn create_tables(&self, of: &[(ViewName, GenerationNo)]) -> Result<(), StoreError> {
        let statements = of
            .iter()
            .flat_map(|(view, no)| self.names(*view, *no).statements());
        self.change_schema(statements).await
    }

    /// Runs statements by one server, then waits once until all servers know the schema, and learns it.
    async fn change_schema(
        &self,
        statements: impl IntoIterator<Item = String>,
    ) -> Result<(), StoreError> {
        let server = self.schema_server();
        for statement in statements {
            self.link()
                .change_schema(&statement, server.as_ref())
                .await?;
        }
        if let Some(session) = self.link().session()
            && let Err(error) = session.await_schema_agreement().await
        {
            let key = self.keyspace().to_owned();
            return Err(StoreError::request("agree on", "the schema", key, error));
        }
        self.refresh().await
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        let Some(session) = self.link().session() else {
            return Ok(());
        };
        let key = self.keyspace().to_owned();
        match session.refresh_metadata().await {
            Ok(()) => Ok(()),
            Err(error) => Err(StoreError::request("read", "the schema", key, error)),
        }
    }

    /// The server that changes the schema: of those connected the one with the least id, which any other set-up picks
    /// too.
    fn schema_server(&self) -> Option<ExecutionProfileHandle> {
        let session = self.link().session()?;
        let state = session.get_cluster_state();
        let profile = session.get_default_execution_profile_handle();
        let connected = state
            .get_nodes_info()
            .iter()
            .filter(|node| node.is_connected());
        let Some(server) = connected.min_by_key(|node| node.host_id) else {
            // The request will say why none is connected.
            return Some(profile.clone());
        };
        let server = NodeIdentifier::Node(Arc::clone(server));
        let profile = profile
            .pointee_to_builder()
            .load_balancing_policy(SingleTargetLoadBalancingPolicy::new(server, None));
        Some(profile.build().into_handle())
    }

    /// Records the log where none is recorded. Gives what is.
    async fn record_log(&self, asked: &RecordedLog) -> Result<RecordedLog, SetupError> {
        let logs = &self.catalog().await?.logs;
        let mut recorded = logs.read(self.link()).await?;
        if recorded.is_empty() {
            logs.write_first(self.link(), asked).await?;
            recorded = logs.read(self.link()).await?;
        }
        // Two set-ups for different topics at one moment both record theirs; then neither goes on.
        for log in &recorded {
            if let Some((setting, recorded, asked)) = difference(log, asked) {
                let keyspace = self.keyspace().to_owned();
                return Err(SetupError::OtherLog {
                    keyspace,
                    setting,
                    recorded,
                    asked,
                });
            }
        }
        Ok(recorded.into_iter().next().unwrap_or_else(|| asked.clone()))
    }

    async fn record_generation(
        &self,
        view: ViewName,
        generation: &RecordedGeneration,
    ) -> Result<(), StoreError> {
        let generations = &self.catalog().await?.generations;
        generations
            .write_first(self.link(), view, generation)
            .await?;
        Ok(())
    }

    async fn recorded_active(&self, view: ViewName) -> Result<RecordedGeneration, SetupError> {
        let no = self
            .active_generation(view)
            .await?
            .unwrap_or(GenerationNo::FIRST);
        let recorded = self.generations(view).await?;
        recorded
            .into_iter()
            .find(|generation| generation.no == no && generation.state.is_usable())
            .ok_or(SetupError::NotRecorded { view, no })
    }
}

/// The first setting that differs, as recorded and as asked for.
fn difference(
    recorded: &RecordedLog,
    asked: &RecordedLog,
) -> Option<(&'static str, String, String)> {
    let (old, new) = (&recorded.settings, &asked.settings);
    let differs = |setting, old: &dyn ToString, new: &dyn ToString| {
        let (old, new) = (old.to_string(), new.to_string());
        (old != new).then_some((setting, old, new))
    };
    let topic_id = match (&recorded.topic_id, &asked.topic_id) {
        (Some(old), Some(new)) => differs("topic_id", old, new),
        // Not everybody can tell it.
        (None, _) | (_, None) => None,
    };
    differs("topic", &recorded.topic, &asked.topic)
        .or(differs("partitions", &old.partitions, &new.partitions))
        .or(differs(
            "dedupe_window_ms",
            &old.dedupe.millis,
            &new.dedupe.millis,
        ))
        .or(differs("dedupe_ids", &old.dedupe.ids, &new.dedupe.ids))
        .or(topic_id)
}

fn replication(datacenter: Option<&str>, factor: u16) -> String {
    match datacenter {
        Some(datacenter) => {
            let datacenter = datacenter.replace('\'', "''");
            format!("{{'class': 'NetworkTopologyStrategy', '{datacenter}': {factor}}}")
        }
        None => format!("{{'class': 'SimpleStrategy', 'replication_factor': {factor}}}"),
    }
}

/// Names the setting that cannot be, if there is one.
fn check(settings: &SetupSettings) -> Result<(), &'static str> {
    let log = &settings.log.settings;
    positive("replication_factor", settings.replication_factor.into())?;
    positive("partitions", log.partitions.into())?;
    positive("dedupe_window_ms", log.dedupe.millis)?;
    positive("dedupe_ids", signed(log.dedupe.ids))?;
    settings.generations.values().try_for_each(check_generation)
}

fn check_generation(settings: &GenerationSettings) -> Result<(), &'static str> {
    positive("bucket_seqs", signed(settings.bucket_seqs))?;
    positive("inbox_period_ms", settings.inbox_period_millis)?;
    positive("inbox_ttl_ms", settings.inbox_ttl_millis)?;
    positive("block_seqs", signed(settings.block_seqs))?;
    positive("piece_ids", signed(settings.piece_ids))
}

/// A number as CQL has it; one that is beyond it is as bad as a negative one.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(-1)
}

fn positive(setting: &'static str, value: i64) -> Result<(), &'static str> {
    if value > 0 { Ok(()) } else { Err(setting) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyspace_is_replicated_in_the_datacentre_that_is_set() {
        assert_eq!(
            replication(Some("o'hare"), 3),
            "{'class': 'NetworkTopologyStrategy', 'o''hare': 3}"
        );
        assert_eq!(
            replication(None, 1),
            "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        );
    }

    #[test]
    fn a_topic_made_anew_is_another_log_where_its_id_is_known() {
        let log = |topic_id: Option<&str>| RecordedLog {
            topic: "tidemark.events".to_owned(),
            topic_id: topic_id.map(str::to_owned),
            settings: Default::default(),
        };
        let found = difference(&log(Some("a")), &log(Some("b")));
        assert_eq!(found, Some(("topic_id", "a".to_owned(), "b".to_owned())));
        assert_eq!(difference(&log(None), &log(Some("b"))), None);
        assert_eq!(difference(&log(Some("a")), &log(None)), None);
    }
}
