//! What the process tells of itself, to standard error. Standard output is for results.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, filter::ParseError};

use crate::settings::{LogSettings, typed::LogFormat};

/// What a command logs unless told otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// It runs for long and its log is watched.
    Service,
    /// Its result is what people look at.
    Command,
}

impl Verbosity {
    const fn filter(self) -> &'static str {
        match self {
            // The clients' own chatter only where somebody must look.
            Self::Service => "info,librdkafka=warn,rdkafka=warn,scylla=warn",
            Self::Command => "warn,librdkafka=error",
        }
    }
}

/// Begins to log.
///
/// # Errors
/// The filter is none.
pub(crate) fn start(settings: &LogSettings, verbosity: Verbosity) -> Result<(), ParseError> {
    let filter = settings.filter.as_deref().unwrap_or(verbosity.filter());
    let subscriber = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(EnvFilter::try_new(filter)?)
        .with_ansi(std::io::stderr().is_terminal());
    match settings.format {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
    }
    Ok(())
}
