//! A store that workers have folded a log into is clean, at rest and while they are at work.

use proptest::prelude::*;
use tidemark_audit::{Invariant, Shelves};
use tidemark_fold::ViewName;
use tidemark_model::{Logged, Model, Verdict, generate::Cast};

use crate::world::{Dice, Reading, assert_clean, at_rest, audit, end_of, moments, rules};

fn read_while_at_work(log: &[Logged], seed: u64) -> Shelves {
    let mut dice = Dice(seed);
    let settings = rules().generation;
    let roaming = moments(log, rules(), &mut dice);
    let sessions = moments(log, rules(), &mut dice);
    let inbox = moments(log, rules(), &mut dice);
    Shelves {
        roaming: Some(Reading::of(roaming, dice.clone()).read(log, settings)),
        sessions: Some(Reading::of(sessions, Dice(seed ^ 1)).read(log, settings)),
        inbox: Some(Reading::of(inbox, Dice(seed ^ 2)).read(log, settings)),
        seen: tidemark_audit::Seen::default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_store_at_rest_is_clean_and_everything_is_counted(log in Cast::SMALL.logs(120)) {
        let report = audit(&log, at_rest(&log, rules()), rules().log);
        assert_clean(&report);
        let model = Model::of(&log, &Cast::SMALL.settings);
        let count = |is: &dyn Fn(&Verdict) -> bool| {
            model.verdicts().filter(|(_, verdict)| is(verdict)).count() as u64
        };
        for view in &report.views {
            prop_assert_eq!(view.records.read, log.len() as u64);
            prop_assert_eq!(view.records.accepted, count(&|it| matches!(it, Verdict::Accepted { .. })));
            prop_assert_eq!(view.records.duplicates, count(&|it| *it == Verdict::Duplicate));
            prop_assert_eq!(view.records.refused, count(&|it| matches!(it, Verdict::Refused(_))));
            prop_assert_eq!(view.conversations, model.conversations().count() as u64);
        }
        for invariant in &report.invariants {
            prop_assert_eq!(invariant.passed_over, 0, "{}", invariant);
        }
    }

    #[test]
    fn a_store_is_clean_while_workers_die_and_come_back_late(
        log in Cast::SMALL.logs(90),
        seed in any::<u64>(),
    ) {
        let report = audit(&log, read_while_at_work(&log, seed), rules().log);
        assert_clean(&report);
    }

    #[test]
    fn each_view_can_be_audited_alone(log in Cast::SMALL.logs(60), seed in any::<u64>()) {
        let only = |view: ViewName| {
            let mut shelves = read_while_at_work(&log, seed);
            if view != ViewName::Roaming { shelves.roaming = None; }
            if view != ViewName::Sessions { shelves.sessions = None; }
            if view != ViewName::Inbox { shelves.inbox = None; }
            shelves
        };
        for view in ViewName::ALL {
            assert_clean(&audit(&log, only(view), rules().log));
        }
    }
}

#[test]
fn what_workers_are_at_is_still_looked_at_where_it_is_of_one_moment() {
    let (mut checked, mut passed_over) = (0, 0);
    for seed in 0..40 {
        let log = tidemark_model::generate::log_from_seed(seed, 80);
        let report = audit(&log, read_while_at_work(&log, seed), rules().log);
        for report in &report.invariants {
            if report.invariant == Invariant::UnreadIsCounted {
                checked += report.checked;
                passed_over += report.passed_over;
            }
        }
    }
    assert!(checked > 50, "{checked} sessions were counted");
    assert!(passed_over > 20, "{passed_over} sessions were passed over");
}

#[test]
fn a_store_that_nothing_was_folded_into_is_clean_without_a_checkpoint() {
    let log = tidemark_model::generate::log_from_seed(7, 50);
    let shelves = at_rest(&[], rules());
    assert_clean(&audit(&log, shelves, rules().log));
    assert!(end_of(&log).get() > 0);
}
