//! The story against the model: it is accepted as it is told, and its promise holds.

use std::{collections::BTreeSet, sync::LazyLock};

use tidemark_event::{LogTime, Offset, Payload, rfc3339};
use tidemark_model::{Logged, Model, Session, Settings, Verdict};

use super::*;

/// 1 May 2026, noon, UTC.
const NOW: i64 = 1_777_636_800_000;

static STORY: LazyLock<Story> = LazyLock::new(|| tell(NOW, 1));

/// The model of each conversation by itself: the model's costs grow with the square of a log.
static MODELS: LazyLock<BTreeMap<ConversationId, Model>> = LazyLock::new(|| models(&STORY.events));

fn models(events: &[Event]) -> BTreeMap<ConversationId, Model> {
    let mut logs = BTreeMap::<ConversationId, Vec<Logged>>::new();
    for (offset, event) in events.iter().enumerate() {
        logs.entry(event.conversation.clone())
            .or_default()
            .push(Logged {
                offset: Offset::new(offset as i64),
                log_time: LogTime::from_millis(NOW + offset as i64),
                event: event.clone(),
            });
    }
    let model = |(conversation, log): (_, Vec<Logged>)| {
        (conversation, Model::of(&log, &Settings::default()))
    };
    logs.into_iter().map(model).collect()
}

/// Mira's session in every conversation of hers, at the end.
fn sessions() -> BTreeMap<ConversationId, Session> {
    let user = &STORY.promise.user;
    let sessions = MODELS.iter().filter_map(|(conversation, model)| {
        Some((conversation.clone(), model.session(user, conversation)?))
    });
    sessions.collect()
}

#[test]
fn nothing_in_it_is_refused() {
    for model in MODELS.values() {
        for (offset, verdict) in model.verdicts() {
            assert!(
                matches!(verdict, Verdict::Accepted { .. }),
                "{offset}: {verdict:?}"
            );
        }
    }
}

#[test]
fn exactly_what_was_promised_is_unread() {
    let sessions = sessions();
    let unread = sessions
        .iter()
        .filter(|(_, session)| session.unread > 0)
        .map(|(conversation, session)| (conversation.clone(), session.unread))
        .collect::<BTreeMap<_, _>>();
    assert_eq!(unread, STORY.promise.unread);

    let sum_of = |kind: Kind| {
        let of_kind = sessions.values().filter(|session| session.kind == kind);
        of_kind.map(|session| session.unread).sum::<u64>()
    };
    assert_eq!(sum_of(Kind::Group), 900);
    assert_eq!(STORY.promise.unread_in_groups, 900);
    assert_eq!(sum_of(Kind::Direct), STORY.promise.unread_in_directs);
    let with_unread = sessions
        .values()
        .filter(|session| session.kind == Kind::Group && session.unread > 0);
    assert_eq!(with_unread.count(), 40);
}

#[test]
fn she_is_mentioned_three_times_by_name_and_once_with_everybody() {
    let (mut by_name, mut with_all) = (Vec::new(), Vec::new());
    for (conversation, session) in sessions() {
        by_name.extend(
            session
                .unread_mentions
                .iter()
                .map(|seq| (conversation.clone(), *seq)),
        );
        with_all.extend(session.mentioned_all.map(|seq| (conversation.clone(), seq)));
    }
    assert_eq!(by_name.len(), 3);
    assert_eq!(by_name, STORY.promise.mentions);
    assert_eq!(
        with_all,
        Vec::from_iter(STORY.promise.mentioned_all.clone())
    );
}

#[test]
fn her_device_has_stored_what_was_before_and_nothing_since() {
    let Promise { user, device, .. } = &STORY.promise;
    for (conversation, model) in MODELS.iter() {
        let Some(session) = model.session(user, conversation) else {
            continue;
        };
        let pending = model.pending(user, conversation, device);
        assert!(pending.len() as u64 >= session.unread, "{conversation}");
        assert!(
            pending.iter().all(|seq| *seq > session.read_seq),
            "{conversation}"
        );
    }
}

#[test]
fn it_is_as_large_as_it_should_be() {
    let groups = MODELS
        .keys()
        .filter(|conversation| !conversation.as_str().starts_with("direct-"));
    assert_eq!(groups.count(), 41);
    assert_eq!(MODELS.len(), 41 + 60);
    let events = STORY.events.len();
    assert!((18_000..22_000).contains(&events), "{events}");
    for group in &GROUPS {
        let conversation = ConversationId::new(group.id).unwrap();
        let members = MODELS[&conversation].members(&conversation).len();
        let absent = group.members.checked_sub(members);
        assert!(
            absent.is_some_and(|absent| absent <= 3 + group.members / 10),
            "{}: {members}",
            group.id
        );
    }
}

#[test]
fn everything_happens_in_it() {
    let kinds: BTreeSet<&str> = STORY
        .events
        .iter()
        .map(|event| event.payload.type_name())
        .collect();
    for kind in [
        "ConversationCreated",
        "MembersAdded",
        "MembersRemoved",
        "MessageSent",
        "MessageEdited",
        "MessageRecalled",
        "ReadAdvanced",
        "SessionChanged",
        "InboxAcked",
    ] {
        assert!(kinds.contains(kind), "{kind}");
    }
    let messages = STORY
        .events
        .iter()
        .filter_map(|event| match &event.payload {
            Payload::MessageSent(sent) => Some(sent),
            _ => None,
        });
    assert!(messages.clone().any(|sent| sent.silent));
    assert!(messages.clone().any(|sent| sent.content_type == "system"));
    assert!(messages.clone().any(|sent| sent.reply_to.is_some()));
    assert!(messages.clone().any(|sent| sent.mentions.len() == 1));
}

#[test]
fn it_ends_now_and_mira_has_been_silent_for_five_days() {
    let times: Vec<i64> = STORY
        .events
        .iter()
        .map(|event| event.occurred_at.unwrap())
        .collect();
    assert!(times.is_sorted());
    assert_eq!(rfc3339(times[0]).unwrap(), "2026-04-25T12:00:00Z");
    assert!(times.iter().all(|at| *at <= NOW));
    let user = &STORY.promise.user;
    let last_act = STORY
        .events
        .iter()
        .rposition(|event| event.actor == *user)
        .unwrap();
    assert_eq!(rfc3339(times[last_act]).unwrap(), "2026-04-26T11:59:00Z");
}

#[test]
fn the_same_seed_and_end_tell_the_same_story() {
    let again = tell(NOW, 1);
    assert_eq!(again.events, STORY.events);
    assert_eq!(again.promise, STORY.promise);
    let ids: BTreeSet<_> = STORY.events.iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), STORY.events.len());
    let other = tell(NOW, 2);
    assert_ne!(other.events, STORY.events);
    assert!(
        tell(NOW + 1, 1)
            .events
            .iter()
            .all(|event| !ids.contains(&event.id))
    );
}

#[test]
fn its_promise_does_not_depend_on_the_seed() {
    for seed in 2..14 {
        let promise = tell(NOW, seed).promise;
        assert_eq!(promise.unread, STORY.promise.unread);
        assert_eq!(promise.mentions.len(), 3);
        assert!(promise.mentioned_all.is_some());
    }
}
