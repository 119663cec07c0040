//! That the generator goes everywhere, and that what it makes shrinks.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use tidemark_event::{ConversationId, EventId};
use tidemark_model::{
    Logged, Model, REASONS, Session, Verdict,
    generate::{Cast, log_from_seed, logs},
};

const CAST: Cast = Cast::SMALL;

/// The logs that the counts below are of.
fn some_logs() -> impl Iterator<Item = Vec<Logged>> {
    (0..300).map(|seed| log_from_seed(seed, 60))
}

/// Each record with its verdict.
fn judged(log: &[Logged]) -> Vec<(&Logged, Verdict)> {
    let model = Model::of(log, &CAST.settings);
    log.iter()
        .zip(model.verdicts())
        .map(|(logged, (_, verdict))| (logged, verdict))
        .collect()
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted { seq: None } => "accepted",
        Verdict::Accepted { seq: Some(_) } => "accepted message",
        Verdict::Duplicate => "duplicate",
        Verdict::Refused(reason) => reason,
    }
}

#[test]
fn every_verdict_and_every_reason_comes_up() {
    let mut counts = BTreeMap::<&str, usize>::new();
    for log in some_logs() {
        for (_, verdict) in judged(&log) {
            *counts.entry(verdict_name(verdict)).or_default() += 1;
        }
    }
    for name in REASONS
        .into_iter()
        .chain(["accepted", "accepted message", "duplicate"])
    {
        assert!(
            counts.get(name).is_some_and(|count| *count >= 20),
            "{name}: {counts:?}"
        );
    }
    let all = counts.values().sum::<usize>();
    let accepted = counts["accepted"] + counts["accepted message"];
    assert!(accepted * 10 > all * 7, "most are accepted: {counts:?}");
    assert!(accepted * 10 < all * 9, "a fair share is not: {counts:?}");
}

#[test]
fn every_kind_of_event_is_accepted_and_refused() {
    let mut met = BTreeSet::<(&str, &str)>::new();
    for log in some_logs() {
        for (Logged { event, .. }, verdict) in judged(&log) {
            let verdict = match verdict {
                Verdict::Accepted { .. } => "accepted",
                Verdict::Duplicate => "duplicate",
                Verdict::Refused(_) => "refused",
            };
            met.insert((event.payload.type_name(), verdict));
            if event.by_service {
                met.insert((event.payload.type_name(), "accepted from a service"));
            }
        }
    }
    // 14 types, each accepted, repeated, refused, and sent by a service.
    assert_eq!(met.len(), 14 * 4, "{met:?}");
}

#[test]
fn conversations_pass_both_limits_and_stay_below_them() {
    let mut met = BTreeSet::new();
    for log in some_logs() {
        let model = Model::of(&log, &CAST.settings);
        for conversation in CAST
            .conversations()
            .iter()
            .filter(|place| model.exists(place))
        {
            met.insert(("copied", model.copied_to(conversation).is_none()));
            met.insert((
                "copied anew",
                model
                    .copied_to(conversation)
                    .is_some_and(|seq| seq.get() > 0),
            ));
            let sizes = (1..=log.len()).map(|len| {
                Model::of(&log[..len], &CAST.settings)
                    .members(conversation)
                    .len()
            });
            let largest = sizes.max().unwrap_or(0);
            met.insert(("fanned out", largest <= CAST.fan_out_limit));
            let now = model.members(conversation).len();
            met.insert((
                "shrunk below",
                largest > CAST.fan_out_limit && now <= CAST.settings.copy_limit,
            ));
        }
        if met.len() == 8 {
            return;
        }
    }
    panic!("only {met:?}");
}

#[test]
fn ids_come_again_at_both_ends_of_the_dedupe_window() {
    let mut met = BTreeSet::new();
    let window = CAST.settings.dedupe_window_millis;
    for log in some_logs() {
        let mut accepted = BTreeMap::<(ConversationId, EventId), i64>::new();
        for (
            Logged {
                event, log_time, ..
            },
            verdict,
        ) in judged(&log)
        {
            let key = (event.conversation.clone(), event.id);
            let age = accepted.get(&key).map(|then| log_time.millis() - then);
            match (verdict, age) {
                (Verdict::Duplicate, Some(age)) if age == window - 1 => {
                    met.insert("last duplicate")
                }
                (Verdict::Accepted { .. }, Some(age)) if age == window => {
                    met.insert("first too old")
                }
                (Verdict::Accepted { .. }, Some(age)) if age < window => {
                    met.insert("too many since")
                }
                _ => false,
            };
            if let Verdict::Accepted { .. } = verdict {
                accepted.insert(key, log_time.millis());
            }
        }
    }
    assert_eq!(
        met,
        BTreeSet::from(["first too old", "last duplicate", "too many since"])
    );
}

#[test]
fn sessions_come_to_every_state() {
    let mut met = BTreeSet::new();
    for log in some_logs() {
        let model = Model::of(&log, &CAST.settings);
        for (user, place) in CAST.users().iter().flat_map(|user| {
            CAST.conversations()
                .into_iter()
                .map(move |place| (user, place))
        }) {
            let Some(session) = model.session(user, &place) else {
                continue;
            };
            let rejoined = !session.left && model.members(&place)[user].get() > 1;
            for (name, holds) in [
                ("unread", session.unread > 2),
                ("mentions", session.unread_mentions.len() > 1),
                ("mentioned all", session.mentioned_all.is_some()),
                ("cleared", session.cleared_to.get() > 0),
                (
                    "peer ahead",
                    session
                        .peer_read_seq
                        .is_some_and(|seq| seq > session.read_seq),
                ),
                ("marked", session.marked_unread),
                ("pinned", session.pinned),
                ("muted", session.muted),
                ("draft", !session.draft.is_empty()),
                ("left", session.left),
                ("not listed", !session.listed),
                ("not listed, unread", !session.listed && session.unread > 0),
                ("left, not listed", session.left && !session.listed),
                (
                    "no last message",
                    session.last_message.is_none() && session.last_seq.get() > 0,
                ),
                ("joined later", rejoined),
            ] {
                if holds {
                    met.insert(name);
                }
            }
        }
    }
    assert_eq!(met.len(), 15, "{met:?}");
}

#[test]
fn a_seed_makes_the_same_log_and_another_seed_another() {
    assert_eq!(log_from_seed(7, 40), log_from_seed(7, 40));
    assert_ne!(log_from_seed(7, 40), log_from_seed(8, 40));
    assert_eq!(log_from_seed(7, 40)[..30], log_from_seed(7, 30));
}

/// The shortest log that proptest finds to break a claim.
#[track_caller]
fn shrunk(claim: fn(&Model) -> bool) -> Vec<Logged> {
    let settings = Config {
        failure_persistence: None,
        ..Config::default()
    };
    let same_each_time = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let tested = TestRunner::new_with_rng(settings, same_each_time).run(&logs(60), |log| {
        let holds = claim(&Model::of(&log, &CAST.settings));
        if holds {
            Ok(())
        } else {
            Err(TestCaseError::fail("it does not hold"))
        }
    });
    match tested {
        Err(TestError::Fail(_, log)) => log,
        other => panic!("nothing breaks the claim: {other:?}"),
    }
}

fn no_session(model: &Model, is_so: fn(&Session) -> bool) -> bool {
    let users = CAST.users();
    !users
        .iter()
        .flat_map(|user| model.sessions(user))
        .any(|session| is_so(&session))
}

#[test]
fn a_failure_shrinks_to_the_few_events_it_needs() {
    let nobody_has_two_unread = |model: &Model| no_session(model, |session| session.unread > 1);
    let nobody_left = |model: &Model| no_session(model, |session| session.left);
    let nobody_marks_unread = |model: &Model| no_session(model, |session| session.marked_unread);
    let nobody_joins_later = |model: &Model| {
        CAST.conversations()
            .iter()
            .all(|place| model.members(place).values().all(|since| since.get() == 1))
    };
    let nobody_is_mentioned_twice = |model: &Model| {
        CAST.users()
            .iter()
            .all(|user| model.mentions(user).len() < 2)
    };
    let nothing_is_duplicate = |model: &Model| {
        !model
            .verdicts()
            .any(|(_, verdict)| verdict == Verdict::Duplicate)
    };

    for (claim, log, most) in [
        ("two unread", shrunk(nobody_has_two_unread), 4),
        ("left", shrunk(nobody_left), 3),
        ("marked", shrunk(nobody_marks_unread), 4),
        ("joined later", shrunk(nobody_joins_later), 4),
        ("mentioned twice", shrunk(nobody_is_mentioned_twice), 6),
        ("duplicate", shrunk(nothing_is_duplicate), 3),
    ] {
        assert!(log.len() <= most, "{claim}: {log:?}");
    }
}

proptest! {
    #[test]
    fn offsets_rise_and_log_time_never_goes_back(log in logs(60)) {
        for pair in log.windows(2) {
            prop_assert!(pair[0].offset < pair[1].offset);
            prop_assert!(pair[0].log_time <= pair[1].log_time);
        }
    }

    #[test]
    fn a_verdict_does_not_depend_on_what_comes_later(log in logs(60), cut in any::<prop::sample::Index>()) {
        let cut = cut.index(log.len() + 1);
        let beginning = Model::of(&log[..cut], &CAST.settings).verdicts().collect::<Vec<_>>();
        let whole = Model::of(&log, &CAST.settings).verdicts().take(cut).collect::<Vec<_>>();
        prop_assert_eq!(beginning, whole);
    }

    #[test]
    fn conversations_do_not_touch_each_other(log in logs(60)) {
        let whole = Model::of(&log, &CAST.settings);
        for conversation in CAST.conversations() {
            let own = log.iter().filter(|logged| logged.event.conversation == conversation);
            let alone = Model::of(&own.cloned().collect::<Vec<_>>(), &CAST.settings);
            prop_assert_eq!(alone.messages(&conversation), whole.messages(&conversation));
            for user in CAST.users() {
                prop_assert_eq!(alone.session(&user, &conversation), whole.session(&user, &conversation));
            }
        }
    }

    #[test]
    fn what_is_pending_is_in_the_inbox_and_what_is_unread_or_in_the_inbox_is_visible(log in logs(60)) {
        let model = Model::of(&log, &CAST.settings);
        for conversation in CAST.conversations() {
            for user in CAST.users() {
                let visible = model.history_visible(&user, &conversation);
                let inbox = model.inbox(&user, &conversation);
                prop_assert!(visible.is_sorted_by(|one, other| one < other));
                prop_assert!(inbox.iter().all(|seq| visible.contains(seq)));
                for device in CAST.devices() {
                    let pending = model.pending(&user, &conversation, &device);
                    prop_assert!(pending.iter().all(|seq| inbox.contains(seq)));
                }
                let Some(session) = model.session(&user, &conversation) else { continue };
                let beyond = visible.iter().filter(|seq| **seq > session.read_seq).count() as u64;
                prop_assert!(session.unread <= beyond);
                prop_assert!(session.unread_mentions.iter().all(|seq| visible.contains(seq)));
                prop_assert!(session.read_seq <= session.last_seq);
            }
        }
    }
}
