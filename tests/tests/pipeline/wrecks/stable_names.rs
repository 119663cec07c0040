//! Two workers by one stable name.

use crate::{PATIENCE, Settings, Town, View, until};

/// P22.
#[tokio::test]
async fn of_two_workers_with_one_stable_name_one_goes_and_says_why() {
    let town = Town::empty(Settings::default()).await;
    for line in [
        "the consumer met an error and goes on",
        "fenced",
        "failed for good",
        "error:",
    ] {
        town.foresees(line);
    }
    town.start_gateway().await;
    let start = || town.begin_worker_with(View::Roaming, &["--static-member-id", "one"]);
    let first = start();
    first.ready().await;
    let second = start();
    let ended = until("one ended", PATIENCE, async || {
        let ended = [&first, &second].map(|worker| worker.ended());
        match ended {
            [None, None] => Err("both run"),
            [one, other] => Ok(one.or(other).unwrap()),
        }
    })
    .await;
    assert!(!ended.success(), "it tells by its exit code: {ended}");
    let rest = if first.ended().is_some() {
        second
    } else {
        first
    };
    rest.ready().await;
    town.caught_up(View::Roaming).await;
}
