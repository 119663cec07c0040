//! `tidemark project`.

use std::collections::BTreeSet;

use clap::{Args, ValueEnum as _};
use tidemark_fold::{ViewName, inbox::Inbox, roaming::Roaming, sessions::Sessions};
use tidemark_projector::{GroupProtocol, StartError, Status, WorkerSettings, http, project};
use tidemark_store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::ViewArgument,
    outcome::{Outcome, UsageError},
    service::{Lifeline, Listen, connect},
    settings::{Settings, file::ProjectTable, said},
};

/// Keep views up to date with the log
///
/// A worker for one or more views, until SIGINT or SIGTERM: then it flushes what it has folded and leaves its groups.
/// Start as many as there is work for; the log's partitions are shared among those of one view. Serves /healthz,
/// /readyz and /metrics where --listen says so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidemark project roaming sessions inbox
  tidemark project sessions --listen 127.0.0.1:8082")]
pub(crate) struct Project {
    /// The views
    #[arg(required = true, value_name = "VIEW")]
    views: Vec<ViewArgument>,

    #[command(flatten)]
    listen: Listen,

    /// How Kafka shares partitions among workers [default: classic]
    #[arg(
        long,
        env = "TIDEMARK_GROUP_PROTOCOL",
        hide_env_values = true,
        value_name = "PROTOCOL"
    )]
    group_protocol: Option<ProtocolArgument>,

    /// A stable name of this worker within its groups, so that a restart keeps its partitions
    #[arg(
        long,
        env = "TIDEMARK_STATIC_MEMBER_ID",
        hide_env_values = true,
        value_name = "NAME"
    )]
    static_member_id: Option<String>,

    /// Conversation state that each view keeps in memory, in MiB [default: 256]
    #[arg(
        long,
        env = "TIDEMARK_STATE_BUDGET_MIB",
        hide_env_values = true,
        value_name = "MIB"
    )]
    state_budget_mib: Option<usize>,

    /// The most records that are folded at once [default: 5000]
    #[arg(
        long,
        env = "TIDEMARK_BATCH_RECORDS",
        hide_env_values = true,
        value_name = "NUMBER"
    )]
    batch_records: Option<usize>,

    #[command(flatten)]
    lifeline: Lifeline,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ProtocolArgument {
    /// With the cooperative-sticky assignor
    Classic,
    /// KIP-848, decided by the brokers: Kafka 4.0 and later
    Consumer,
}

impl Project {
    pub(crate) async fn run(self, settings: &Settings) -> anyhow::Result<Outcome> {
        let shutdown = self.lifeline.hold()?;
        let views: BTreeSet<ViewName> = self.views.iter().map(|view| view.name()).collect();
        let worker = self.worker_settings(settings)?;
        let Some(store) = connect(&settings.store, &shutdown).await? else {
            return Ok(Outcome::Done);
        };
        let statuses: Vec<Status> = views.iter().map(|view| Status::new(*view)).collect();
        let mut workers = JoinSet::new();
        if let Some(listen) = worker.listen {
            let served = http::serve(listen, statuses.clone(), shutdown.clone());
            workers.spawn(async move {
                anyhow::Context::with_context(served.await, || format!("cannot serve at {listen}"))
            });
        }
        for status in statuses {
            let (worker, store, shutdown) = (worker.clone(), store.clone(), shutdown.clone());
            workers.spawn(async move { Ok(work(worker, &store, status, shutdown).await?) });
        }
        // The first that ends takes the others with it; each brings its partitions to rest.
        let mut result = Ok(Outcome::Done);
        while let Some(ended) = workers.join_next().await {
            shutdown.cancel();
            if let Err(error) = ended.map_err(anyhow::Error::from).flatten()
                && result.is_ok()
            {
                result = Err(error);
            }
        }
        result
    }

    fn worker_settings(self, settings: &Settings) -> anyhow::Result<WorkerSettings> {
        let file = settings.project.clone();
        let mut worker = WorkerSettings::new(settings.kafka.clone());
        worker.group_protocol = protocol(self.group_protocol, &file)?;
        worker.static_member_id = said(self.static_member_id).or(said(file.static_member_id));
        if let Some(mebibytes) = self.state_budget_mib.or(file.state_budget_mib) {
            worker.state_budget_bytes = mebibytes << 20;
        }
        if let Some(records) = self.batch_records.or(file.batch_records) {
            worker.batch.records = records.max(1);
        }
        worker.listen = self.listen.or(file.listen)?;
        Ok(worker)
    }
}

fn protocol(
    typed: Option<ProtocolArgument>,
    file: &ProjectTable,
) -> Result<GroupProtocol, UsageError> {
    let filed = match file.group_protocol.as_deref() {
        Some(text) => match ProtocolArgument::from_str(text, false) {
            Ok(protocol) => Some(protocol),
            Err(_) => {
                let problem =
                    format!("project.group_protocol is {text:?}, neither classic nor consumer");
                return Err(UsageError(problem));
            }
        },
        None => None,
    };
    Ok(match typed.or(filed) {
        Some(ProtocolArgument::Consumer) => GroupProtocol::Consumer,
        Some(ProtocolArgument::Classic) | None => GroupProtocol::Classic,
    })
}

async fn work(
    worker: WorkerSettings,
    store: &Store,
    status: Status,
    shutdown: CancellationToken,
) -> Result<(), StartError> {
    match status.view() {
        ViewName::Roaming => project::<Roaming>(worker, store, status, shutdown).await,
        ViewName::Sessions => project::<Sessions>(worker, store, status, shutdown).await,
        ViewName::Inbox => project::<Inbox>(worker, store, status, shutdown).await,
    }
}
