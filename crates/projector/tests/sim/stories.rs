//! Faults that real systems had, one kind at a time, each again and again in every view. The names in brackets are those
//! of the scenarios that they stand for.

use tidemark_fold::{inbox::Inbox, roaming::Roaming, sessions::Sessions};

use crate::{
    checkers::Reader,
    faults::{Kind, draw_of},
    random::Random,
    run::Scene,
    scene,
    shelf::SimView,
    shrink::attempt,
    stage,
    tally::Tally,
};

/// Seeds that each kind is tried with, in each view.
const SEEDS: u64 = 6;

/// Nothing but these faults, each as often as its weight says, in every view.
fn nothing_but(kinds: &[(u64, Kind)]) -> Tally {
    let mut total = Tally::default();
    total += in_view::<Roaming>(kinds);
    total += in_view::<Sessions>(kinds);
    total += in_view::<Inbox>(kinds);
    total
}

fn in_view<V: SimView + Reader>(kinds: &[(u64, Kind)]) -> Tally {
    let staged = stage::<V>(1_000);
    let mut total = Tally::default();
    for seed in 0..SEEDS {
        let calm = scene(seed, &staged);
        let count = if kinds.is_empty() {
            0
        } else {
            calm.faults.len()
        };
        let scene = Scene {
            faults: draw_of(&mut Random::new(seed), kinds, count, calm.steps),
            ..calm
        };
        match attempt::<V>(&scene) {
            Ok(tally) => total += tally,
            Err(failure) => panic!("{}, seed {seed}, of {kinds:?}: {failure}", V::NAME),
        }
    }
    total
}

/// Holes in the offsets and markers at the end stop nobody, and lag reaches 0 [P6, P7, P10].
#[test]
fn an_undisturbed_run_comes_to_the_end_of_a_log_with_holes_and_poison() {
    let total = nothing_but(&[]);
    assert_eq!((total.crash_points, total.crashes), (0, 0));
}

/// A write fails and a later one succeeds; one answer in a few is lost [A1, P1, P14].
#[test]
fn a_write_without_an_answer_is_never_passed_over() {
    assert!(nothing_but(&[(1, Kind::Lose)]).lost > 100);
}

/// The client has given up, and the write arrives after newer ones [P15].
#[test]
fn a_write_that_arrives_late_is_harmless() {
    assert!(nothing_but(&[(3, Kind::Lose), (1, Kind::Slow)]).late > 50);
}

/// A crash between any two requests, again and again, with records folded twice and three times [A2, A6].
#[test]
fn a_crash_between_any_two_requests_changes_nothing() {
    assert!(nothing_but(&[(1, Kind::Crash)]).crashes > 200);
}

/// A partition goes from one to another and back; what was gathered and not flushed is not committed [A7, P2].
#[test]
fn a_partition_that_is_moved_goes_on_where_the_view_stands() {
    nothing_but(&[(1, Kind::Move)]);
}

/// An owner is stopped in the middle, replaced, and goes on after the new owner has advanced [A9].
#[test]
fn an_owner_that_is_woken_takes_nothing_back() {
    let total = nothing_but(&[(1, Kind::Freeze)]);
    assert!(total.wakings > 100 && total.overtaken > 0, "{total:?}");
}

/// Answers to an earlier ownership arrive when another has the partition [P3].
#[test]
fn a_member_that_does_not_know_it_was_put_out_changes_nothing() {
    let total = nothing_but(&[(2, Kind::PutOut), (1, Kind::Slow)]);
    assert!(total.overtaken > 0, "{total:?}");
}

/// A worker that is asked to stop has either flushed a batch or left it alone [A18].
#[test]
fn a_worker_that_stops_leaves_nothing_half_done() {
    nothing_but(&[(2, Kind::Stop), (1, Kind::Slow)]);
}

/// The dead-letter topic cannot be written: the checkpoint waits [P9].
#[test]
fn a_checkpoint_waits_for_dead_letters() {
    nothing_but(&[(1, Kind::LettersAway)]);
}

/// Everybody dies at once, or the store goes back to what it was.
#[test]
fn a_restart_of_all_and_a_restored_store_catch_up() {
    let total = nothing_but(&[(1, Kind::CrashAll), (2, Kind::Snapshot), (2, Kind::Restore)]);
    assert!(total.restored > 20, "{total:?}");
}
