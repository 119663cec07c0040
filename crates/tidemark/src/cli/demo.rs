//! `tidemark demo`.

use clap::Args;

use crate::{
    demo::{self, Wanted},
    outcome::Outcome,
    service::Listen,
    settings::Settings,
    shutdown,
};

/// Tell a made-up story, and show what somebody sees who comes back
///
/// Sets up a keyspace of its own, starts a gateway and three projectors, appends some 20,000 events of a made-up
/// workplace, waits for the views, and shows the first screen of somebody who was away for five days; then checks it
/// against the story, and stays until Ctrl-C. Wants a log that holds nothing yet: `make demo` brings servers for it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  make demo
  make demo ONCE=1
  TIDEMARK_KAFKA=127.0.0.1:9092 TIDEMARK_CQL=127.0.0.1:9042 tidemark demo --once")]
pub(crate) struct Demo {
    /// End once the story has been told and checked: 0 if it is as promised, else 1
    #[arg(long)]
    once: bool,

    /// What the story follows from: another seed, another story
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    listen: Listen,
}

impl Demo {
    pub(crate) async fn run(self, settings: Settings) -> anyhow::Result<Outcome> {
        let wanted = Wanted {
            seed: self.seed,
            listen: self.listen.or(None)?,
            once: self.once,
        };
        let shutdown = shutdown::on_signals()?;
        demo::run(settings, &wanted, &shutdown).await
    }
}
