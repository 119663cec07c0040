//! Each view, folded from any log, agrees with the naive model of it, however the log is cut into batches and
//! wherever crashes, forgetting and zombies come between.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use tidemark_event::NextOffset;
use tidemark_fold::{inbox::Inbox, roaming::Roaming, sessions::Sessions};
use tidemark_model::{
    Logged, Model,
    generate::Cast,
    story::{direct, read, sent, story},
};
use tidemark_proof::{Checked, Rules, STEPS, Shelf, Step, Worker, check_verdicts, fold_all};

fn rules() -> Rules {
    Rules::of(&Cast::SMALL.settings, Cast::SMALL.fan_out_limit)
}

fn check<V: Checked>(shelf: &Shelf<V>, log: &[Logged]) {
    let model = Model::of(log, &Cast::SMALL.settings);
    tidemark_proof::check(shelf, &model, &Cast::SMALL.users(), &rules().generation);
}

fn agrees<V: Checked>(log: &[Logged], batch: usize) {
    let (shelf, outcomes) = fold_all::<V>(log, rules(), batch);
    check_verdicts(&Model::of(log, &Cast::SMALL.settings), &outcomes);
    check(&shelf, log);
}

/// What happens at one batch of a disturbed run.
#[derive(Debug, Clone)]
struct Turn {
    records: usize,
    /// The worker dies in this step, and another resumes from the checkpoint.
    dies_in: Option<Step>,
    /// The worker forgets what it has in memory first, as an eviction makes it.
    forgets: bool,
    /// The worker is frozen before it flushes and replaced; what it had folded arrives this many turns later.
    frozen_for: Option<usize>,
    foresees: bool,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let step = prop::sample::select(&STEPS[..]);
    let turn = (
        1..12_usize,
        prop::option::weighted(0.3, step),
        prop::bool::ANY,
        prop::option::weighted(0.2, 1..5_usize),
        prop::bool::ANY,
    )
        .prop_map(|(records, dies_in, forgets, frozen_for, foresees)| Turn {
            records,
            dies_in,
            forgets,
            frozen_for,
            foresees,
        });
    prop::collection::vec(turn, 1..20)
}

fn agrees_when_disturbed<V: Checked>(log: &[Logged], turns: &[Turn]) {
    let mut shelf = Shelf::<V>::default();
    let mut worker = Worker::new(rules());
    let mut zombies: Vec<(usize, Vec<_>)> = Vec::new();
    let mut turn_no = 0;
    let undisturbed = Turn {
        records: 7,
        dies_in: None,
        forgets: false,
        frozen_for: None,
        foresees: true,
    };
    loop {
        let turn = turns.get(turn_no).unwrap_or(&undisturbed);
        let begin = log
            .iter()
            .position(|logged| shelf.next.admits(logged.offset))
            .unwrap_or(log.len());
        let batch = &log[begin..(begin + turn.records).min(log.len())];
        zombies.retain(|(wakes, changes)| {
            if *wakes > turn_no {
                return true;
            }
            for step in STEPS {
                shelf.write(step, changes, NextOffset::START, false);
            }
            false
        });
        if batch.is_empty() && zombies.is_empty() {
            break;
        }
        turn_no += 1;
        if turn.forgets {
            worker = Worker::new(rules());
        }
        let (changes, _) = worker.fold(batch, &shelf, turn.foresees);
        if let Some(turns) = turn.frozen_for {
            zombies.push((turn_no + turns, changes));
            worker = Worker::new(rules());
            continue;
        }
        let next = batch
            .last()
            .map_or(shelf.next, |last| NextOffset::after(last.offset));
        for step in STEPS {
            let dies = turn.dies_in == Some(step);
            shelf.write(step, &changes, next, dies);
            if dies {
                worker = Worker::new(rules());
                break;
            }
        }
    }
    check(&shelf, log);
    let (undisturbed, _) = fold_all::<V>(log, rules(), log.len());
    assert_eq!(
        shelf.rows, undisturbed.rows,
        "rows of a disturbed and an undisturbed run"
    );
    assert_eq!(
        shelf.heads, undisturbed.heads,
        "heads of a disturbed and an undisturbed run"
    );
}

/// Found by the property below: whether the peer was shown a read once hung on the reader's own row.
#[test]
fn a_read_is_shown_to_the_peer_though_a_crash_came_between_their_rows() {
    let log = story([direct(["anna", "bo"]), sent("bo"), read("anna", 1)]);
    for step in STEPS {
        for records in 1..=3 {
            let dying = Turn {
                records,
                dies_in: Some(step),
                forgets: false,
                frozen_for: None,
                foresees: false,
            };
            let whole = Turn {
                dies_in: None,
                ..dying.clone()
            };
            agrees_when_disturbed::<Sessions>(&log, &[whole.clone(), whole, dying]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512,
        failure_persistence: None, max_shrink_iters: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn roaming_agrees_with_the_model_in_any_batches(log in Cast::SMALL.logs(150), batch in 1..160_usize) {
        agrees::<Roaming>(&log, batch);
    }

    #[test]
    fn sessions_agree_with_the_model_in_any_batches(log in Cast::SMALL.logs(150), batch in 1..160_usize) {
        agrees::<Sessions>(&log, batch);
    }

    #[test]
    fn inbox_agrees_with_the_model_in_any_batches(log in Cast::SMALL.logs(150), batch in 1..160_usize) {
        agrees::<Inbox>(&log, batch);
    }

    #[test]
    fn roaming_is_the_same_after_crashes_and_zombies(log in Cast::SMALL.logs(100), turns in turns()) {
        agrees_when_disturbed::<Roaming>(&log, &turns);
    }

    #[test]
    fn sessions_are_the_same_after_crashes_and_zombies(log in Cast::SMALL.logs(100), turns in turns()) {
        agrees_when_disturbed::<Sessions>(&log, &turns);
    }

    #[test]
    fn inbox_is_the_same_after_crashes_and_zombies(log in Cast::SMALL.logs(100), turns in turns()) {
        agrees_when_disturbed::<Inbox>(&log, &turns);
    }
}
