//! What became of an event, as the roaming view tells within the dedupe window: accepted, refused, or not known yet.

use jiff::Timestamp;
use tidemark_event::{ConversationId, EventId, LogTime, Offset};
use tidemark_fold::{AcceptedId, DedupeWindow, Head, PieceNo, Reason, roaming::Roaming};

use crate::{
    app::App,
    problem::{Answer, Problem},
    room,
    views::Opened,
};

/// What became of an event id in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// An event with it was accepted.
    Accepted(AcceptedId),
    /// Every event with it was refused, the newest at this offset for this reason.
    Refused(Offset, Reason),
    /// The view has not met it, or not within the window.
    Unknown,
}

/// What became of an event id, as of now. An acceptance outranks refusals.
pub(crate) async fn of(
    app: &App,
    view: &Opened<Roaming>,
    conversation: &ConversationId,
    id: EventId,
) -> Answer<Fate> {
    let head = room::head(app, view, conversation).await?.value;
    if let Some(head) = &head {
        let pieces: Vec<PieceNo> = head.dedupe.live.iter().map(|span| span.no).collect();
        let facts = view.accepted(conversation, &pieces, id).await?;
        if let Some(accepted) = newest(facts, head, app.log.settings.dedupe, now()) {
            return Ok(Fate::Accepted(accepted));
        }
    }
    let refusals = view.refusals(conversation, id).await?;
    Ok(match refusals.last() {
        Some(refusal) => Fate::Refused(refusal.offset, refusal.reason),
        None => Fate::Unknown,
    })
}

/// What the brokers' clocks may show by now: the log time of an event that is yet to be appended.
fn now() -> LogTime {
    LogTime::from_millis(Timestamp::now().as_millisecond())
}

/// The newest acceptance that the head knows of and that the window still holds at `now`.
fn newest(
    facts: Vec<AcceptedId>,
    head: &Head<()>,
    window: DedupeWindow,
    now: LogTime,
) -> Option<AcceptedId> {
    let now = now.max(head.log_time).millis();
    let counts = |fact: &AcceptedId| {
        let is_young = now.saturating_sub(fact.log_time.millis()) < window.millis;
        let is_among_newest = head.dedupe.accepted.saturating_sub(fact.ordinal) <= window.ids;
        fact.offset <= head.applied && is_young && is_among_newest
    };
    facts
        .into_iter()
        .filter(counts)
        .max_by_key(|fact| fact.offset)
}

/// A refusal by the folds, as the caller is told.
pub(crate) fn refused(id: EventId, reason: Reason) -> Problem {
    Problem::refused(reason, format!("event {id} was refused: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    const WINDOW: DedupeWindow = DedupeWindow {
        millis: 1_000,
        ids: 10,
    };

    fn fact(offset: i64, ordinal: u64, log_time: i64) -> AcceptedId {
        AcceptedId {
            id: sample::event_id(1),
            offset: Offset::new(offset),
            ordinal,
            log_time: LogTime::from_millis(log_time),
            seq: Some(sample::seq(ordinal + 1)),
        }
    }

    #[track_caller]
    fn found(facts: &[AcceptedId], now: i64, expected: Option<AcceptedId>) {
        let mut head = sample::head(50, 9, ());
        head.dedupe.accepted = 20;
        let newest = newest(facts.to_vec(), &head, WINDOW, LogTime::from_millis(now));
        assert_eq!(newest, expected);
    }

    #[test]
    fn an_acceptance_counts_within_the_window_and_up_to_the_head() {
        found(&[fact(5, 15, 100)], 1_099, Some(fact(5, 15, 100)));
        found(&[fact(5, 15, 100)], 1_100, None);
        found(&[fact(5, 9, 100)], 200, None);
        found(&[fact(51, 20, 100)], 200, None);
        found(
            &[fact(5, 11, 100), fact(40, 19, 150)],
            200,
            Some(fact(40, 19, 150)),
        );
    }
}
