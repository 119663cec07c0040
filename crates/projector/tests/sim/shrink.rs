//! Finds a short story in a failing run: the same log with as few faults as still make it fail.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

use crate::{
    checkers::Reader,
    faults::Fault,
    run::{Scene, run},
    shelf::SimView,
    tally::Tally,
};

/// Runs tried at most.
const TRIES: usize = 300;

/// Why a run failed.
pub(crate) type Failure = String;

thread_local! {
    static IS_ATTEMPT: Cell<bool> = const { Cell::new(false) };
}

/// What an attempt panics with is its result, and is not to be told by every attempt.
fn keep_attempts_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = take_hook();
        set_hook(Box::new(move |info| {
            if !IS_ATTEMPT.get() {
                hook(info);
            }
        }));
    });
}

/// Runs a scene, and gives what it panicked with.
pub(crate) fn attempt<V: SimView + Reader>(scene: &Scene) -> Result<Tally, Failure> {
    keep_attempts_quiet();
    IS_ATTEMPT.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(|| run::<V>(scene)));
    IS_ATTEMPT.set(false);
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_else(|| "a panic without words".to_owned())
    })
}

/// The faults that are left of a failing scene's, and what it then fails with.
pub(crate) fn shrink<V: SimView + Reader>(scene: &Scene, failure: Failure) -> (Scene, Failure) {
    let mut least = (scene.clone(), failure);
    let mut tries = 0;
    let mut size = least.0.faults.len().div_ceil(2);
    while size > 0 {
        let mut start = 0;
        while start < least.0.faults.len() && tries < TRIES {
            tries += 1;
            let mut scene = least.0.clone();
            let end = (start + size).min(scene.faults.len());
            let _: Vec<Fault> = scene.faults.drain(start..end).collect();
            match attempt::<V>(&scene) {
                Err(failure) => least = (scene, failure),
                Ok(_) => start += size,
            }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    least
}
