//! Waiting for a condition, with a deadline, telling what was seen last.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

/// How long anything may take that is not expected to take long, on a machine that does much else.
pub const PATIENCE: Duration = Duration::from_secs(45);

/// Looks again and again until `look` finds what it looks for, and returns it.
///
/// # Panics
/// After `patience`, with `what` was waited for and what was seen last.
pub async fn until<T, E: Debug>(
    what: &str,
    patience: Duration,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    const PAUSE: Duration = Duration::from_millis(50);
    let began = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(seen) if began.elapsed() > patience => {
                panic!("not {what} within {patience:?}; seen last: {seen:?}")
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
