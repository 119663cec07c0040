//! The faults, in the order in which they come.

use std::{process::Command, time::Duration};

use futures::future::join_all;
use tidemark_e2e::{
    View, kafka,
    servers::{Server, servers},
};

use crate::phase::{CLASSIC, Chaos, KIP_848};

/// How long something stays frozen: longer than the group waits for a worker.
const FROZEN: Duration = Duration::from_secs(9);

/// Rounds of a third worker that comes and goes, in each protocol: two rebalances a view.
const REBALANCING_ROUNDS: usize = 18;

impl Chaos<'_> {
    /// All phases; of a short run those that take no long waiting.
    pub(crate) async fn run(&self, is_short: bool) {
        self.watched(async {
            self.phase(
                "a worker of each view is killed and replaced, three times",
                kill_workers,
            )
            .await;
            self.phase(
                "a worker of each view is frozen, missed, and woken",
                freeze_workers,
            )
            .await;
            self.phase("a broker is killed and started again", kill_a_broker)
                .await;
            self.phase(
                "a node of the store is killed and started again",
                kill_a_node,
            )
            .await;
            self.phase("an aborted transaction ends the log", abort_a_transaction)
                .await;
            if is_short {
                return;
            }
            self.phase("a broker is frozen and woken", freeze_a_broker)
                .await;
            self.phase("a node of the store is frozen and woken", freeze_a_node)
                .await;
            self.phase(
                "every worker is restarted, one after the other",
                roll_workers,
            )
            .await;
            self.phase(
                "the whole store is slower than workers may be between two polls",
                stall_the_store,
            )
            .await;
            self.phase(
                "every broker, then every node is restarted in turn",
                roll_servers,
            )
            .await;
            self.phase("the store is set back to a snapshot", restore_a_snapshot)
                .await;
            self.phase(
                "a third worker comes and goes, by the classic protocol",
                async |chaos| rebalance(chaos, &CLASSIC).await,
            )
            .await;
            self.phase("all workers change to KIP-848", change_protocol)
                .await;
            self.phase("a third worker comes and goes, by KIP-848", async |chaos| {
                rebalance(chaos, &KIP_848).await
            })
            .await;
            self.phase("workers of KIP-848 are killed and frozen", async |chaos| {
                kill_workers_with(chaos, &KIP_848).await;
                freeze_workers(chaos).await;
            })
            .await;
            self.phase(
                "everything at once: a worker, a broker and a node are killed",
                kill_one_of_each,
            )
            .await;
        })
        .await;
    }
}

fn did(what: &str, to: &str) {
    println!("  {what} {to}");
}

async fn kill_workers(chaos: &Chaos<'_>) {
    kill_workers_with(chaos, &CLASSIC).await;
}

async fn kill_workers_with(chaos: &Chaos<'_>, arguments: &[&str]) {
    for _ in 0..3 {
        for view in View::ALL {
            chaos.some_time(Duration::from_millis(700)).await;
            let worker = chaos.any_worker(view);
            worker.kill();
            did("killed a worker of", view.name());
            chaos.town.begin_worker_with(view, arguments);
        }
    }
    chaos.town.all_ready().await;
}

async fn freeze_workers(chaos: &Chaos<'_>) {
    let workers = View::ALL.map(|view| chaos.any_worker(view));
    for worker in &workers {
        worker.freeze();
        did("froze a worker of", worker.name());
    }
    tokio::time::sleep(FROZEN).await;
    for worker in &workers {
        worker.thaw();
    }
    did("woke", "them");
}

/// One of three, by the dice.
fn one_of_three(chaos: &Chaos<'_>) -> u8 {
    1 + chaos.dice.below(3) as u8
}

async fn kill_a_broker(chaos: &Chaos<'_>) {
    kill_and_restart(chaos, Server::Broker(one_of_three(chaos))).await;
}

async fn kill_a_node(chaos: &Chaos<'_>) {
    kill_and_restart(chaos, Server::Node(one_of_three(chaos))).await;
}

async fn kill_and_restart(chaos: &Chaos<'_>, server: Server) {
    servers().kill(server);
    did("killed", &server.name());
    chaos.some_time(Duration::from_secs(6)).await;
    servers().start().await;
    did("started", &server.name());
}

async fn freeze_a_broker(chaos: &Chaos<'_>) {
    freeze_and_wake(Server::Broker(one_of_three(chaos))).await;
}

async fn freeze_a_node(chaos: &Chaos<'_>) {
    freeze_and_wake(Server::Node(one_of_three(chaos))).await;
}

async fn freeze_and_wake(server: Server) {
    servers().freeze(server);
    did("froze", &server.name());
    tokio::time::sleep(FROZEN).await;
    servers().thaw(server);
    did("woke", &server.name());
}

async fn roll_workers(chaos: &Chaos<'_>) {
    for view in View::ALL {
        for worker in chaos.workers(view) {
            let status = worker.terminate().await;
            assert!(status.success(), "{}: {status}", view.name());
            chaos.start_worker(view).await;
            did("restarted a worker of", view.name());
        }
    }
}

/// All nodes are frozen for longer than a consumer may take between two polls.
async fn stall_the_store(chaos: &Chaos<'_>) {
    const MOST_BETWEEN_POLLS: [&str; 2] = ["--kafka-property", "max.poll.interval.ms=7000"];
    let arguments = [&CLASSIC[..], &MOST_BETWEEN_POLLS].concat();
    for view in View::ALL {
        let workers = chaos.workers(view);
        join_all(workers.iter().map(|worker| worker.terminate())).await;
        for _ in &workers {
            chaos.town.begin_worker_with(view, &arguments);
        }
    }
    chaos.town.all_ready().await;
    let nodes = [1, 2, 3].map(Server::Node);
    for node in nodes {
        servers().freeze(node);
        did("froze", &node.name());
    }
    tokio::time::sleep(Duration::from_secs(16)).await;
    for node in nodes {
        servers().thaw(node);
    }
    did("woke", "them");
}

async fn roll_servers(_: &Chaos<'_>) {
    for server in [1, 2, 3]
        .map(Server::Broker)
        .into_iter()
        .chain([1, 2, 3].map(Server::Node))
    {
        servers().kill(server);
        servers().start().await;
        did("restarted", &server.name());
    }
}

/// Every partition ends in records that no reader is ever given.
async fn abort_a_transaction(chaos: &Chaos<'_>) {
    for partition in 0..i32::from(chaos.town.settings().partitions) {
        let values = [b"never".to_vec(), b"to be read".to_vec()];
        kafka::append_in_transaction(partition, b"nobody", &values, false).await;
    }
    did("aborted a transaction in", "every partition");
}

/// A snapshot that was taken while no worker ran: what is lost with the store is folded again from the log.
async fn restore_a_snapshot(chaos: &Chaos<'_>) {
    let nodes = [1, 2, 3].map(Server::Node);
    let stop_workers = async || {
        let workers = View::ALL.map(|view| chaos.workers(view)).concat();
        join_all(workers.iter().map(|worker| worker.terminate())).await;
    };
    let start_workers = async || {
        for view in View::ALL {
            for _ in 0..2 {
                chaos.town.begin_worker_with(view, &CLASSIC);
            }
        }
        chaos.town.all_ready().await;
    };
    stop_workers().await;
    nodes.iter().for_each(|node| servers().kill(*node));
    nodes.iter().for_each(|node| copy(*node, "", ".snapshot"));
    did("made a snapshot of", "the store");
    servers().start().await;
    start_workers().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    stop_workers().await;
    nodes.iter().for_each(|node| servers().kill(*node));
    nodes.iter().for_each(|node| copy(*node, ".snapshot", ""));
    did("set back", "the store");
    servers().start().await;
    start_workers().await;
}

/// Replaces one folder of a node's data by another.
fn copy(node: Server, from: &str, to: &str) {
    let folder = |suffix: &str| servers().folder().join(node.name() + suffix);
    let _ = std::fs::remove_dir_all(folder(to));
    let copied = Command::new("cp")
        .arg("-a")
        .arg(folder(from))
        .arg(folder(to))
        .status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "{node:?} cannot be copied"
    );
}

async fn rebalance(chaos: &Chaos<'_>, arguments: &[&str]) {
    for _ in 0..REBALANCING_ROUNDS {
        let third = View::ALL.map(|view| chaos.town.begin_worker_with(view, arguments));
        for worker in &third {
            worker.ready().await;
        }
        chaos.some_time(Duration::from_millis(500)).await;
        for status in join_all(third.iter().map(|worker| worker.terminate())).await {
            assert!(status.success(), "{status}");
        }
    }
    did(
        "forced rebalances:",
        &(2 * View::ALL.len() * REBALANCING_ROUNDS).to_string(),
    );
}

async fn change_protocol(chaos: &Chaos<'_>) {
    for view in View::ALL {
        let workers = chaos.workers(view);
        join_all(workers.iter().map(|worker| worker.terminate())).await;
        for _ in &workers {
            chaos.town.begin_worker_with(view, &KIP_848);
        }
    }
    chaos.town.all_ready().await;
}

async fn kill_one_of_each(chaos: &Chaos<'_>) {
    for view in View::ALL {
        chaos.any_worker(view).kill();
        did("killed a worker of", view.name());
    }
    let (broker, node) = (
        Server::Broker(one_of_three(chaos)),
        Server::Node(one_of_three(chaos)),
    );
    for server in [broker, node] {
        servers().kill(server);
        did("killed", &server.name());
    }
    chaos.some_time(Duration::from_secs(5)).await;
    servers().start().await;
    did("started", "both servers");
    for view in View::ALL {
        chaos.town.begin_worker_with(view, &KIP_848);
    }
    chaos.town.all_ready().await;
}
