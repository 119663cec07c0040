//! A simulator of the worker: the code that runs in production, over a log and a store in memory.
//!
//! A seed draws everything: the events, who works on which partition and when, in which order requests are answered,
//! and the faults. A worker may crash between any two requests, or be frozen at one, replaced and woken later, when its
//! requests go on as if nothing had happened. A write may arrive in part, in any order, late, or without its
//! acknowledgement. After the last fault the views must equal the naive model of the log, whatever came before; on the
//! way no checkpoint may pass what is not written.
//!
//! `TIDEMARK_SIM_SEED` runs one seed again and tells its story; `TIDEMARK_SIM_SEEDS` says how many are run.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod random;
mod run;
mod store;
mod world;

use tidemark_fold::{inbox::Inbox, roaming::Roaming, sessions::Sessions};

use crate::run::{Tally, run};

/// Seeds of a short proof.
const SEEDS: u64 = 200;

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is not a number: {text}")),
    )
}

fn prove<V: tidemark_proof::Checked>() {
    if let Some(seed) = variable("TIDEMARK_SIM_SEED") {
        println!("{} seed {seed}: {:?}", V::NAME, run::<V>(seed, true));
        return;
    }
    let seeds = variable("TIDEMARK_SIM_SEEDS").unwrap_or(SEEDS);
    let mut total = Tally::default();
    for seed in 0..seeds {
        let outcome = std::panic::catch_unwind(|| run::<V>(seed, false));
        match outcome {
            Ok(tally) => total += tally,
            Err(_) => panic!(
                "seed {seed} of {} failed: run it alone with TIDEMARK_SIM_SEED={seed}",
                V::NAME
            ),
        }
    }
    println!("{} seeds 0..{seeds}: {total:?}", V::NAME);
    assert!(
        total.crashes > 0 && total.wakings > 0 && total.lost_answers > 0 && total.late_writes > 0,
        "{total:?}"
    );
    assert!(
        total.overtaken > 0,
        "no zombie was ever told that it was overtaken: {total:?}"
    );
}

#[test]
fn roaming_is_exact_whatever_crashes() {
    prove::<Roaming>();
}

#[test]
fn sessions_are_exact_whatever_crashes() {
    prove::<Sessions>();
}

#[test]
fn inbox_is_exact_whatever_crashes() {
    prove::<Inbox>();
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in 0..20 {
        assert_eq!(
            run::<Sessions>(seed, false),
            run::<Sessions>(seed, false),
            "seed {seed}"
        );
    }
}
