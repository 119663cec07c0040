//! Tidemark's one binary: its command line, its settings, and the commands that are no server's.
//!
//! What is typed is parsed ([`cli`]), what it means is decided ([`settings`]), then one command runs and tells by its
//! exit code how it went ([`outcome`]). The servers themselves are the crates below this one.

mod append;
mod cli;
mod demo;
mod import;
mod kafka;
mod lag;
mod logging;
mod outcome;
mod output;
mod progress;
mod release;
mod service;
mod settings;
mod setup;
mod shutdown;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;

use crate::{
    cli::Arguments,
    outcome::{Outcome, UsageError, conclude},
    settings::Settings,
};

fn main() -> ExitCode {
    conclude(run(Arguments::parse()))
}

fn run(arguments: Arguments) -> anyhow::Result<Outcome> {
    let settings = Settings::resolve(&arguments.typed)?;
    logging::start(&settings.log, arguments.command.verbosity())
        .map_err(|error| UsageError(format!("--log: {error}")))?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let result = runtime.block_on(arguments.command.run(settings));
    // What still blocks a thread, such as a read of standard input, must not keep the process.
    runtime.shutdown_background();
    result
}
