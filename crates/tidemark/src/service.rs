//! What commands have in common that run until they are told to stop.

use std::{net::SocketAddr, time::Duration};

use clap::Args;
use tidemark_store::{ConnectError, Store, StoreSettings};
use tokio_util::sync::CancellationToken;

use crate::{
    outcome::{UsageError, describe},
    settings::said,
    shutdown,
};

/// Between two tries to reach a store that is away.
const PAUSE: Duration = Duration::from_secs(1);

/// Where it listens.
#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// The address to listen on, as in 127.0.0.1:8080
    #[arg(
        long,
        env = "TIDEMARK_LISTEN",
        hide_env_values = true,
        value_name = "ADDRESS:PORT"
    )]
    listen: Option<String>,
}

/// What ends it.
#[derive(Debug, Args)]
pub(crate) struct Lifeline {
    /// End as well when standard input closes: with the process that started this one
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

impl Listen {
    /// What was typed, else what the file says.
    ///
    /// # Errors
    /// It is no address.
    pub(crate) fn or(self, file: Option<String>) -> Result<Option<SocketAddr>, UsageError> {
        let Some(text) = said(self.listen).or(said(file)) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(address) => Ok(Some(address)),
            Err(_) => Err(UsageError(format!(
                "{text:?} is no address to listen on, as in 127.0.0.1:8080 or 0.0.0.0:8080"
            ))),
        }
    }
}

impl Lifeline {
    /// Is cancelled when the process is to end.
    ///
    /// # Errors
    /// Signals cannot be listened to.
    pub(crate) fn hold(&self) -> std::io::Result<CancellationToken> {
        let token = shutdown::on_signals()?;
        if self.until_stdin_closes {
            shutdown::with_standard_input(&token);
        }
        Ok(token)
    }
}

/// Connects to the store, however long that takes; none where the process is to end before.
///
/// # Errors
/// The settings cannot be: no later try would help.
pub(crate) async fn connect(
    settings: &StoreSettings,
    shutdown: &CancellationToken,
) -> Result<Option<Store>, ConnectError> {
    loop {
        let connected = tokio::select! {
            () = shutdown.cancelled() => return Ok(None),
            connected = Store::connect(settings) => connected,
        };
        match connected {
            Ok(store) => return Ok(Some(store)),
            Err(error) if error.is_transient() => {
                tracing::warn!(
                    error = describe(&error),
                    "the store cannot be reached, trying again"
                );
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = shutdown.cancelled() => return Ok(None),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(typed: Option<&str>, file: Option<&str>) -> Result<Option<SocketAddr>, UsageError> {
        let listen = typed.map(str::to_owned);
        Listen { listen }.or(file.map(str::to_owned))
    }

    #[test]
    fn an_address_is_what_was_typed_else_what_the_file_says() {
        let address = |text: &str| Some(text.parse().unwrap());
        assert_eq!(
            listen(Some("[::1]:1"), Some("127.0.0.1:2")).unwrap(),
            address("[::1]:1")
        );
        assert_eq!(
            listen(Some(""), Some("127.0.0.1:2")).unwrap(),
            address("127.0.0.1:2")
        );
        assert_eq!(listen(None, None).unwrap(), None);
        assert!(listen(Some("8080"), None).is_err());
    }
}
