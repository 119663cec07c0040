//! `tidemark audit`.

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
};

use clap::Args;
use tidemark_audit::{AuditSettings, LogReader, Report, Scope, audit};
use tidemark_event::{ConversationId, UserId};
use tidemark_store::Store;

use super::ViewArgument;
use crate::{
    outcome::{Outcome, UsageError},
    output::Output,
    progress::{self, Progress},
    settings::Settings,
};

/// Fold the log anew, and hold everything that the views have stored against it
///
/// Reads only, and may run beside workers: each row is compared as of its own applied offset. Beside the folds it counts
/// in what is stored: roaming has no gaps, each unread number is what the reader finds, the views agree.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidemark audit
  tidemark audit --conversation tea
  tidemark audit --view sessions --user anna
  tidemark audit --output json | jq .difference_count

Exit code 0 where there is no difference, 1 where there is one.")]
pub(crate) struct Audit {
    /// Only this view; may be repeated
    #[arg(long = "view", value_name = "VIEW")]
    views: Vec<ViewArgument>,
    /// Only this conversation
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Only what is this user's own
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// List at most so many differences; all are counted
    #[arg(long, value_name = "N", default_value_t = 100)]
    differences: usize,
    /// Hold what is stored of so many partitions in memory at once [default: all]
    #[arg(long, value_name = "N")]
    partitions_per_pass: Option<NonZeroUsize>,
    #[command(flatten)]
    output: Output,
}

impl Audit {
    pub(crate) async fn run(self, settings: &Settings) -> anyhow::Result<Outcome> {
        let audited = self.settings()?;
        let store = Store::connect(&settings.store).await?;
        let report = run_audit(settings, &store, &audited).await?;
        self.output.print(&report, |report| format!("{report}\n"))?;
        Ok(Outcome::difference_if(!report.is_clean()))
    }

    fn settings(&self) -> Result<AuditSettings, UsageError> {
        let defaults = AuditSettings::default();
        let views: BTreeSet<_> = self.views.iter().map(|view| view.name()).collect();
        let conversation = self
            .conversation
            .as_ref()
            .map(ConversationId::new)
            .transpose();
        let user = self.user.as_ref().map(UserId::new).transpose();
        let refused =
            |flag: &str, error: &dyn std::error::Error| UsageError(format!("{flag}: {error}"));
        Ok(AuditSettings {
            views: if views.is_empty() {
                defaults.views
            } else {
                views
            },
            scope: Scope {
                conversation: conversation.map_err(|error| refused("--conversation", &error))?,
                user: user.map_err(|error| refused("--user", &error))?,
            },
            partitions_per_pass: self
                .partitions_per_pass
                .unwrap_or(defaults.partitions_per_pass),
            differences_listed: self.differences,
            ..defaults
        })
    }
}

/// Audits, with a bar on a terminal.
pub(crate) async fn run_audit(
    settings: &Settings,
    store: &Store,
    audited: &AuditSettings,
) -> anyhow::Result<Report> {
    let log = LogReader::new(settings.kafka.clone());
    Ok(audit(&log, store, audited, Arc::new(Bar::default())).await?)
}

/// Counts stored rows first; then shows how far the log is read.
struct Bar(Mutex<(Progress, bool)>);

impl Default for Bar {
    fn default() -> Self {
        Self(Mutex::new((
            progress::counter("rows read from the store"),
            false,
        )))
    }
}

impl tidemark_audit::Progress for Bar {
    fn stored(&self, read: u64) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .reach(read);
    }

    fn log(&self, read: u64, of: u64) {
        let mut bar = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !bar.1 {
            *bar = (progress::bar(0, "records folded"), true);
        }
        bar.0.expect_length(of);
        bar.0.reach(read);
    }
}
