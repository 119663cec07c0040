//! What the process tells of itself, to standard error. Standard output is for results.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, filter::ParseError};

use crate::settings::{LogSettings, typed::LogFormat};

/// What a command logs unless told otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// It runs for long and its log is watched.
    Service,
    /// It moves many events, and servers may be in trouble for a while without ending it.
    Transfer,
    /// It asks something, and tells what it was answered or why it was not.
    Question,
}

impl Verbosity {
    /// The servers' clients log on several levels what their errors say as well.
    const fn filter(self) -> &'static str {
        match self {
            Self::Service => "info,librdkafka=warn,rdkafka=warn,scylla=warn",
            Self::Transfer => "warn,librdkafka=off,scylla=off",
            Self::Question => "warn,librdkafka=off,rdkafka=off,scylla=off",
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
