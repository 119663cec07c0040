//! Chaos on real servers: three brokers, three nodes of the store, two workers a view. Processes are killed, frozen and
//! restarted under a steady load, one kind of fault after the other; after each, lag must reach 0, every answer must be
//! the naive model's, and `tidemark audit` must find no difference.
//!
//! Prints what was done to which process, how many events were appended and acknowledged, how long recovery took (from
//! the fault's end until lag is 0) and how long a view stood still. `make chaos` runs all of it; `TIDEMARK_CHAOS=short`
//! one round of the faults that take no long waiting. TIDEMARK_CHAOS_SEED picks victims and moments.
//!
//! Run it by `TIDEMARK_SERVERS=cluster deploy/dev/with-servers cargo test --workspace --test chaos -- --ignored`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod dice;
mod faults;
mod phase;
mod traffic;
mod watch;

use std::time::Instant;

use tidemark_e2e::{Settings, Town, View, servers::servers};

use crate::phase::Chaos;

/// What the logs say while servers and workers die, and should: that something is tried again, what the client has met,
/// and errors that tell a worker of what was done to it.
const FORESEEN: [&str; 7] = [
    " WARN ",
    " librdkafka: ",
    " rdkafka::client: ",
    "another worker has the partition",
    "joining the group anew",
    "the group could not be rebalanced",
    "dead letters cannot be sent",
];

#[tokio::test]
#[ignore = "needs three brokers and three nodes"]
async fn nothing_is_lost_doubled_or_miscounted_whatever_is_killed_or_frozen() {
    assert!(
        servers().are_a_cluster(),
        "run it by TIDEMARK_SERVERS=cluster deploy/dev/with-servers"
    );
    let is_short = std::env::var("TIDEMARK_CHAOS").is_ok_and(|word| word == "short");
    let began = Instant::now();
    let town = Town::alone(Settings {
        gateways: 2,
        ..Settings::default()
    })
    .await;
    FORESEEN.iter().for_each(|line| town.foresees(line));
    let chaos = Chaos::begin(&town).await;
    for view in View::ALL {
        chaos.start_worker(view).await;
    }
    chaos.run(is_short).await;
    println!("chaos ended after {:.0} s", began.elapsed().as_secs_f64());
}
