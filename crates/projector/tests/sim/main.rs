//! A simulator of the worker: the code that runs in production, from the loop that owns the partitions to the statements
//! it sends, over a log, a consumer group and a store in memory.
//!
//! A seed draws everything: the log, who is in the group and when, what is fetched, in which order requests are
//! answered, and the faults. A process may crash at any await, or be frozen, replaced and woken later; a partition is
//! moved while it works; a request is lost, and served all the same, or later, or not; the store is away, or set back
//! to a snapshot. What must hold meanwhile and in the end is in `checkers`.
//!
//! `TIDEMARK_SIM_SEED` tries one seed again, with a short story if it fails. `TIDEMARK_SIM_SEEDS` says which are tried:
//! a number, or `from..to`. A crash point is one crash, one freeze or one lost request at a step that the seed draws.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod checkers;
mod faults;
mod group;
mod process;
mod random;
mod reference;
mod run;
mod shelf;
mod shrink;
mod source;
mod stories;
mod tally;
mod workload;
mod world;

use std::{ops::Range, sync::Arc, time::Instant};

use tidemark_fold::{
    ViewName,
    inbox::Inbox,
    planted::{Fault, plant},
    roaming::Roaming,
    sessions::Sessions,
};

use crate::{
    checkers::Reader,
    random::Random,
    reference::Reference,
    run::Scene,
    shelf::SimView,
    shrink::{attempt, shrink},
    tally::Tally,
    workload::Workload,
};

/// Seeds of a short proof, for each view: 20,000 crash points in all.
const SEEDS: u64 = 300;

/// So many seeds are told of at a time.
const SEEDS_A_LINE: u64 = 1_000;

/// Seeds that share a log: the naive model and the undisturbed run are slow.
const SEEDS_A_LOG: u64 = 20;

/// Events in each partition.
const EVENTS: usize = 110;

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("TIDEMARK_SIM_SEEDS") else {
        return 0..SEEDS;
    };
    let parsed = match text.split_once("..") {
        Some((from, to)) => from.parse().and_then(|from| Ok(from..to.parse()?)),
        None => text.parse().map(|to| 0..to),
    };
    parsed.unwrap_or_else(|_| panic!("TIDEMARK_SIM_SEEDS is no number and no range: {text}"))
}

/// The log of a group of seeds, and its undisturbed run.
fn stage<V: SimView>(seed: u64) -> (Arc<Workload>, Arc<Reference>) {
    let workload = Workload::of(seed / SEEDS_A_LOG, EVENTS);
    let reference = Reference::of::<V>(&workload);
    (Arc::new(workload), Arc::new(reference))
}

/// What befalls a seed.
fn scene(seed: u64, (workload, reference): &(Arc<Workload>, Arc<Reference>)) -> Scene {
    let mut random = Random::new(!seed);
    let count = 20 + random.below(40);
    let steps = 30 * count;
    Scene {
        seed,
        workload: workload.clone(),
        reference: reference.clone(),
        faults: faults::draw(&mut random, count, steps),
        steps,
        is_told: false,
    }
}

fn prove<V: SimView + Reader>() {
    if let Ok(seed) = std::env::var("TIDEMARK_SIM_SEED") {
        let seed = seed.parse().expect("TIDEMARK_SIM_SEED is a number");
        return tell::<V>(&scene(seed, &stage::<V>(seed)));
    }
    let (seeds, started) = (seeds(), Instant::now());
    let mut total = Tally::default();
    let mut staged = None;
    for seed in seeds.clone() {
        if staged.is_none() || seed % SEEDS_A_LOG == 0 {
            staged = Some(stage::<V>(seed));
        }
        let scene = scene(seed, staged.as_ref().unwrap());
        match attempt::<V>(&scene) {
            Ok(tally) => {
                total += tally;
                if total.runs.is_multiple_of(SEEDS_A_LINE) {
                    println!("{}, seeds {}..={seed}, all right", V::NAME, seeds.start);
                }
            }
            Err(failure) => panic!(
                "{}, seed {seed}: {failure}\nTIDEMARK_SIM_SEED={seed} tells how it comes about",
                V::NAME
            ),
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{}, seeds {seeds:?}, all right: {total:?}; {:.0} runs and {:.0} steps a second",
        V::NAME,
        total.runs as f64 / seconds,
        total.steps as f64 / seconds
    );
    assert!(
        total.crashes > 0 && total.wakings > 0 && total.lost > 0 && total.late > 0,
        "{total:?}"
    );
    assert!(
        total.overtaken > 0,
        "no zombie was ever told that it was overtaken: {total:?}"
    );
}

/// Tells a seed; one that fails in as few faults as make it fail.
fn tell<V: SimView + Reader>(scene: &Scene) {
    match attempt::<V>(scene) {
        Ok(tally) => println!("{} seed {}: {tally:?}", V::NAME, scene.seed),
        Err(failure) => {
            let (mut least, failure) = shrink::<V>(scene, failure);
            println!("{} seed {}: {failure}", V::NAME, scene.seed);
            println!("the story, with {:?}:", least.faults);
            least.is_told = true;
            let again = attempt::<V>(&least);
            panic!("{again:?}");
        }
    }
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

/// Seeds within which each planted fault is found.
const SEEDS_TO_FIND: u64 = 60;

/// Plants a fault, and panics unless it is found in one of the views.
fn finds(fault: Fault) {
    let found = find::<Sessions>(fault)
        .or_else(|| find::<Inbox>(fault))
        .or_else(|| find::<Roaming>(fault));
    match found {
        Some((view, seed, failure)) => println!("{fault:?}: {view}, seed {seed}: {failure}"),
        None => panic!("{fault:?} is not found in {SEEDS_TO_FIND} seeds of any view"),
    }
}

fn find<V: SimView + Reader>(fault: Fault) -> Option<(ViewName, u64, String)> {
    let staged = stage::<V>(0);
    (0..SEEDS_TO_FIND).find_map(|seed| {
        let scene = scene(seed, &staged);
        plant(Some(fault));
        let failure = attempt::<V>(&scene).err();
        plant(None);
        Some((V::NAME, seed, failure?))
    })
}

macro_rules! planted {
    ($($test:ident: $fault:ident;)*) => {
        $(#[test]
        fn $test() {
            finds(Fault::$fault);
        })*

        #[test]
        fn every_fault_that_can_be_planted_has_a_test() {
            assert_eq!(Fault::ALL, [$(Fault::$fault),*]);
        }
    };
}

planted! {
    finds_a_checkpoint_before_its_rows: CheckpointBeforeRows;
    finds_a_head_before_its_pieces: HeadBeforePieces;
    finds_a_dedupe_piece_read_without_its_offset: DedupePieceWithoutOffset;
    finds_a_membership_ahead_of_the_head_believed: MembershipAheadOfHead;
    finds_a_row_left_out_for_a_later_event: RowLaterRemoved;
    finds_rows_without_timestamps: RowsWithoutTimestamps;
    finds_rows_without_an_applied_offset: NoAppliedOffset;
    finds_a_commit_on_revoke_without_a_flush: CommitOnRevokeWithoutFlush;
    finds_a_wall_clock_in_a_fold: WallClockInFold;
    finds_a_cache_kept_across_a_rebalance: CacheKeptAcrossRebalance;
    finds_a_dedupe_window_by_wall_clock: DedupeByWallClock;
    finds_null_instead_of_unset: NullInsteadOfUnset;
    finds_a_retry_that_reorders: RetryThatReorders;
    finds_a_hole_skipped_over_unfolded_records: HoleOverUnfoldedRecords;
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let staged = stage::<Sessions>(0);
    for seed in 0..10 {
        let scene = scene(seed, &staged);
        assert_eq!(attempt::<Sessions>(&scene), attempt::<Sessions>(&scene));
    }
}
