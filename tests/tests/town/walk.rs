//! A random walk: some people do whatever people do, by HTTP, and the gateway's answers are held against the model's.
//!
//! What they do comes from the model's generator, which also tries to break every rule. Each call is judged twice: the
//! gateway must let it or refuse it as the model does, and afterwards all that everybody sees must be as the model
//! reads it from the log.
//!
//! The seed is printed; TIDEMARK_WALK_SEED repeats a walk, TIDEMARK_WALK_STEPS makes it longer.

use std::time::{SystemTime, UNIX_EPOCH};

use tidemark_e2e::{
    Answer, Scene,
    audit::audit,
    load::{Load, line},
};
use tidemark_event::{Event, Kind, LogTime, Offset, Payload, UserId};
use tidemark_model::{Logged, Model, Settings, Verdict};

use crate::{Size, Town, Value, json};

/// Every so many steps all that everybody sees is looked at.
const STEPS_BETWEEN_AUDITS: usize = 100;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test]
async fn whatever_people_do_everybody_sees_what_the_log_says() {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let seed = variable("TIDEMARK_WALK_SEED").unwrap_or(now);
    let steps = variable("TIDEMARK_WALK_STEPS").unwrap_or(300) as usize;
    eprintln!("TIDEMARK_WALK_SEED={seed}");
    let town = Town::shared().await;
    let scene = town.scene(Size::AsIs);
    let load = Load::of(seed, steps);
    let mut walk = Walk {
        scene: &scene,
        settings: town.settings().of_model(),
        taken: Vec::new(),
    };
    for (step, event) in load.events.iter().enumerate() {
        walk.step(step, event).await;
        if step % STEPS_BETWEEN_AUDITS == STEPS_BETWEEN_AUDITS - 1 {
            audit(&scene, &load.cast()).await;
        }
    }
    audit(&scene, &load.cast()).await;
    town.audited().await;
}

struct Walk<'s> {
    scene: &'s Scene<'s>,
    settings: Settings,
    /// What the log has taken, in order, as it should be.
    taken: Vec<Logged>,
}

impl Walk<'_> {
    async fn step(&mut self, step: usize, event: &Event) {
        let logged = Logged {
            offset: Offset::new(step as i64),
            log_time: LogTime::from_millis(1_000 + step as i64),
            event: event.clone(),
        };
        // Every fifth step is a producer's, which nobody judges before the folds.
        if step % 5 == 4 || no_call_says(event) {
            let answers = self.scene.service().appends(&[line(event)]).await;
            assert!(
                answers[0]["position"].is_string(),
                "step {step}: {event:?}: {}",
                answers[0]
            );
            self.taken.push(logged);
            return;
        }
        let verdict = self.verdict(&logged);
        self.settle(event).await;
        let answer = call(self.scene, event).await;
        let told = format!(
            "step {step}: {event:?}\nthe model: {verdict:?}\n{} {} {}",
            answer.call, answer.status, answer.text
        );
        match verdict {
            Verdict::Refused(reason) => refused(&answer, reason, &told),
            Verdict::Accepted { .. } if self.is_anothers_message(event) => {
                refused(&answer, "not_allowed", &told)
            }
            Verdict::Accepted { .. } | Verdict::Duplicate => {
                assert_eq!(answer.status, 202, "{told}");
                self.taken.push(logged);
            }
        }
    }

    /// Waits until the gateway judges by all that was said: a refusal does, before it is given. On an older view it may
    /// take what the folds will refuse.
    async fn settle(&self, event: &Event) {
        let path = format!("/conversations/{}/messages", event.conversation.as_str());
        let refused = self.scene.user("nobody-knows-them").get(&path).await;
        assert!(matches!(refused.status, 403 | 404), "{refused:?}");
    }

    /// What the model says of the event after what was taken.
    fn verdict(&self, logged: &Logged) -> Verdict {
        let mut log = self.past_of(&logged.event);
        log.push(logged.clone());
        let model = Model::of(&log, &self.settings);
        model.verdict(logged.offset).expect("it is in the log")
    }

    /// What was taken in the event's conversation: all that its verdict depends on.
    fn past_of(&self, event: &Event) -> Vec<Logged> {
        let is_there = |taken: &&Logged| taken.event.conversation == event.conversation;
        self.taken.iter().filter(is_there).cloned().collect()
    }

    /// Which the gateway judges, and no fold.
    fn is_anothers_message(&self, event: &Event) -> bool {
        let seq = match &event.payload {
            Payload::MessageEdited(edited) => edited.seq,
            Payload::MessageRecalled(recalled) if !event.by_service => recalled.seq,
            _ => return false,
        };
        let model = Model::of(&self.past_of(event), &self.settings);
        let message = model.message(&event.conversation, seq);
        message.is_some_and(|message| message.sender != event.actor)
    }
}

#[track_caller]
fn refused(answer: &Answer, reason: &str, told: &str) {
    assert!((400..500).contains(&answer.status), "{told}");
    let found = answer.body["type"].as_str().unwrap_or_default();
    let found = found.rsplit(':').next().unwrap_or_default();
    // A call may be looked at by itself before the conversation is.
    let may_come_first = ["bad_members", "invalid_request"];
    assert!(found == reason || may_come_first.contains(&found), "{told}");
}

/// Events that no call makes: those that change nothing, and a direct chat of two that names one of them twice.
fn no_call_says(event: &Event) -> bool {
    match &event.payload {
        Payload::ConversationCreated(created) => {
            created.kind == Kind::Direct && created.members.len() > 2
        }
        Payload::ConversationChanged(changed) => {
            changed.title.is_none() && changed.history.is_none()
        }
        Payload::MembersAdded(added) => added.members.is_empty(),
        Payload::MembersRemoved(removed) => removed.members.is_empty(),
        Payload::SessionChanged(changed) => {
            changed.pinned.is_none() && changed.muted.is_none() && changed.draft.is_none()
        }
        _ => false,
    }
}

/// The event as the call that appends it.
async fn call(scene: &Scene<'_>, event: &Event) -> Answer {
    let by = scene.user(event.actor.as_str());
    let by = if event.by_service {
        by.by_service()
    } else {
        by
    };
    let (c, id) = (event.conversation.as_str(), event.id.uuid());
    let names = |users: &[UserId]| {
        users
            .iter()
            .map(|user| json!(user.as_str()))
            .collect::<Value>()
    };
    let with_id = |mut body: Value| {
        body["event_id"] = json!(id);
        body
    };
    let path = format!("/conversations/{c}");
    match &event.payload {
        Payload::ConversationCreated(created) => {
            let body = json!({
                "kind": created.kind, "members": names(&created.members), "title": created.title,
                "history": created.history,
            });
            by.put(&path, with_id(body)).await
        }
        Payload::ConversationChanged(changed) => {
            let body = json!({"title": changed.title, "history": changed.history});
            by.patch(&path, with_id(body)).await
        }
        Payload::MembersAdded(added) => {
            let body = json!({"add": names(&added.members)});
            by.post(&format!("{path}/members"), with_id(body)).await
        }
        Payload::MembersRemoved(removed) => {
            let body = json!({"remove": names(&removed.members)});
            by.post(&format!("{path}/members"), with_id(body)).await
        }
        Payload::MessageSent(sent) => {
            let body = json!({
                "body": sent.body, "content_type": sent.content_type, "mentions": names(&sent.mentions),
                "mention_all": sent.mention_all, "silent": sent.silent, "reply_to": sent.reply_to,
                "occurred_at": event.occurred_at.and_then(tidemark_event::rfc3339),
            });
            by.post(&format!("{path}/messages"), with_id(body)).await
        }
        Payload::MessageEdited(edited) => {
            let body =
                json!({"body": edited.body, "mentions": edited.mentions.as_deref().map(names)});
            by.patch(&format!("{path}/messages/{}", edited.seq), with_id(body))
                .await
        }
        Payload::MessageRecalled(recalled) => {
            by.delete(&format!(
                "{path}/messages/{}?for=everyone&event_id={id}",
                recalled.seq
            ))
            .await
        }
        Payload::MessageHidden(hidden) => {
            by.delete(&format!(
                "{path}/messages/{}?for=me&event_id={id}",
                hidden.seq
            ))
            .await
        }
        Payload::ReadAdvanced(read) => {
            by.put(&format!("{path}/read"), with_id(json!({"seq": read.seq})))
                .await
        }
        Payload::MarkedUnread(marked) => {
            by.put(
                &format!("{path}/unread"),
                with_id(json!({"from_seq": marked.from_seq})),
            )
            .await
        }
        Payload::SessionChanged(changed) => {
            let body =
                json!({"pinned": changed.pinned, "muted": changed.muted, "draft": changed.draft});
            by.patch(&format!("{path}/session"), with_id(body)).await
        }
        Payload::HistoryCleared(_) => by.delete(&format!("{path}/history?event_id={id}")).await,
        Payload::SessionRemoved(_) => by.delete(&format!("/sessions/{c}?event_id={id}")).await,
        Payload::InboxAcked(acked) => {
            let body = json!({"conversation": c, "seq": acked.seq, "device": acked.device});
            by.put("/inbox/ack", with_id(body)).await
        }
    }
}
