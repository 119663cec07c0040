//! The command line: one module a command, each with its arguments, their help, and what it does.

pub(crate) mod audit;
mod demo;
mod gateway;
mod import;
mod produce;
mod project;
mod setup;
mod tail;
mod views;

use clap::{Parser, Subcommand, ValueEnum};
use tidemark_fold::ViewName;

use crate::{
    logging::Verbosity,
    outcome::Outcome,
    settings::{Settings, typed::Typed},
};

/// Keeps an instant-messaging system's past: folds a Kafka log of conversation events into three views in ScyllaDB,
/// and serves them.
#[derive(Debug, Parser)]
#[command(
    name = "tidemark",
    version,
    arg_required_else_help = true,
    subcommand_required = true
)]
#[command(after_help = "To begin with:
  tidemark setup                             make the log's topics and the views' tables
  tidemark project roaming sessions inbox    keep the views up to date
  tidemark gateway                           serve them at http://127.0.0.1:8080
  tidemark views                             see how far the views are

`tidemark help COMMAND` tells more of each. Exit codes: 0 done, 1 a difference or failure, 2 usage.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) typed: Typed,
}

/// What there is to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Setup(setup::Setup),
    Gateway(gateway::Gateway),
    Project(project::Project),
    Views(views::Views),
    Audit(audit::Audit),
    Produce(produce::Produce),
    Tail(tail::Tail),
    Import(import::Import),
    Demo(demo::Demo),
}

/// A view, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewArgument {
    /// The permanent record
    Roaming,
    /// Everybody's list of sessions
    Sessions,
    /// What devices have yet to store
    Inbox,
}

impl ViewArgument {
    const fn name(self) -> ViewName {
        match self {
            Self::Roaming => ViewName::Roaming,
            Self::Sessions => ViewName::Sessions,
            Self::Inbox => ViewName::Inbox,
        }
    }
}

impl Command {
    /// How much the command logs unless told otherwise.
    pub(crate) const fn verbosity(&self) -> Verbosity {
        match self {
            Self::Gateway(_) | Self::Project(_) => Verbosity::Service,
            Self::Produce(_) | Self::Tail(_) | Self::Import(_) | Self::Demo(_) => {
                Verbosity::Transfer
            }
            Self::Setup(_) | Self::Views(_) | Self::Audit(_) => Verbosity::Question,
        }
    }

    /// Does it.
    pub(crate) async fn run(self, settings: Settings) -> anyhow::Result<Outcome> {
        match self {
            Self::Setup(setup) => setup.run(&settings).await,
            Self::Gateway(gateway) => gateway.run(&settings).await,
            Self::Project(project) => project.run(&settings).await,
            Self::Views(views) => views.run(&settings).await,
            Self::Audit(audit) => audit.run(&settings).await,
            Self::Produce(produce) => produce.run(&settings).await,
            Self::Tail(tail) => tail.run(&settings).await,
            Self::Import(import) => import.run(&settings).await,
            Self::Demo(demo) => demo.run(settings).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
