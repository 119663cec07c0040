//! When to stop: SIGINT, SIGTERM, or a parent that is gone.

use std::io::Read as _;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code of a process that a second signal ended.
const INTERRUPTED: i32 = 130;

/// Is cancelled by the first SIGINT or SIGTERM. The second ends the process at once, whatever it does.
///
/// # Errors
/// Signals cannot be listened to.
pub(crate) fn on_signals() -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if cancelled.is_cancelled() {
                std::process::exit(INTERRUPTED);
            }
            cancelled.cancel();
        }
    });
    Ok(token)
}

/// Is cancelled as well once standard input closes: a parent that holds its other end takes this process with it,
/// however it ends.
pub(crate) fn with_standard_input(token: &CancellationToken) {
    let token = token.clone();
    // A thread of its own that is never joined: a read of standard input cannot be interrupted.
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        let mut input = std::io::stdin().lock();
        while matches!(input.read(&mut buffer), Ok(bytes) if bytes > 0) {}
        token.cancel();
    });
}
