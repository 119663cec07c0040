//! Where an import goes on that was run before.
//!
//! Within the log's dedupe window an event that is appended again is dropped by every view, so nothing is to be
//! known. Beyond it, what roaming holds of the conversation tells: its messages are the file's first ones, in their
//! order, so the newest of them is a place in the file, and everything after that is missing.
//!
//! Roaming tells only what it has folded. It is waited for, as long as it moves; what it has not folded when it stands
//! still must be young enough for the window to catch, or nothing is imported.
//!
//! What is between a place and the next message (joins and leaves) may be appended twice by this. Run again in their
//! order, without a message between, they end where they ended before.

use std::{collections::BTreeMap, time::Duration};

use tidemark_event::{ConversationId, Event, EventId, NextOffset, Partition, Payload, Seq};
use tidemark_fold::{LogSettings, ViewName, roaming::Roaming};
use tidemark_store::{Checkpoint, Generation, OpenError, Order, RecordedLog, Store, StoreError};
use tokio::time::Instant;

use crate::{
    kafka::{Cluster, ClusterError},
    release::FOLD_VERSION,
};

/// How long roaming may stand still before it is taken to stand still for good.
const STANDSTILL: Duration = Duration::from_secs(10);
/// Between two looks at its checkpoints.
const LOOK: Duration = Duration::from_millis(250);

/// Why nobody can say where an import goes on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResumeError {
    /// The conversation holds more, or other things, than the file's beginning.
    #[error(
        "{conversation} holds {last} messages, which are not the first {last} of the file: it was imported from \
         another version of the file, or written to by others. Give --channel another name"
    )]
    OtherMessages {
        conversation: ConversationId,
        last: Seq,
    },
    /// What roaming has not folded may be an earlier import that the dedupe window no longer catches.
    #[error(
        "roaming stands still at offset {next} of partition {partition}, {behind} records behind the log, the oldest \
         of them too old for the dedupe window: an import now could add messages twice. Let roaming catch up first \
         (`tidemark project roaming`)"
    )]
    TooFarBehind {
        partition: Partition,
        next: NextOffset,
        behind: u64,
    },
    #[error("view roaming has no active generation: run `tidemark setup`")]
    NoGeneration,
    #[error("roaming cannot be asked what it holds")]
    Open(#[from] OpenError),
    #[error("roaming cannot be asked what it holds")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Kafka(#[from] ClusterError),
}

/// What roaming holds of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Held {
    Nothing,
    /// As many messages as the seq says; the newest was sent by this event.
    Messages {
        last: Seq,
        newest: EventId,
    },
}

/// How many of a file's events, from the first on, are in the log for certain.
pub(super) fn held_events(events: &[Event], held: &Held) -> Result<usize, ResumeError> {
    let (last, newest) = match held {
        Held::Nothing => return Ok(0),
        Held::Messages { last, newest } => (*last, *newest),
    };
    let mut messages = 0;
    for (index, event) in events.iter().enumerate() {
        if let Payload::MessageSent(_) = event.payload {
            messages += 1;
            if event.id == newest && messages == last.get() {
                return Ok(index + 1);
            }
        }
    }
    let conversation = events.first().map(|event| event.conversation.clone());
    match conversation {
        Some(conversation) => Err(ResumeError::OtherMessages { conversation, last }),
        // A file of nothing adds nothing, whatever there is.
        None => Ok(0),
    }
}

/// What roaming holds, as far as an import may rely on it.
pub(super) struct Record {
    roaming: Generation<Roaming>,
}

impl Record {
    /// Waits until roaming has folded these partitions of the log as it is now, as far as it moves.
    ///
    /// # Errors
    /// [`ResumeError`]; where it stands still too far behind, [`ResumeError::TooFarBehind`].
    pub(super) async fn open(
        store: &Store,
        cluster: &Cluster,
        log: &RecordedLog,
        partitions: &[Partition],
    ) -> Result<Self, ResumeError> {
        let active = store.active_generation(ViewName::Roaming).await?;
        let no = active.ok_or(ResumeError::NoGeneration)?;
        let roaming = store.open::<Roaming>(no, FOLD_VERSION).await?;
        let mut ends = cluster.ends(&log.topic, log.settings.partitions).await?;
        ends.retain(|partition, _| partitions.contains(partition));

        let mut checkpoints = roaming.checkpoints().await?;
        let mut moved = Instant::now();
        while !behind(&checkpoints, &ends).is_empty() && moved.elapsed() < STANDSTILL {
            tokio::time::sleep(LOOK).await;
            let now = roaming.checkpoints().await?;
            if now != checkpoints {
                (checkpoints, moved) = (now, Instant::now());
            }
        }
        let behind = behind(&checkpoints, &ends);
        if !behind.is_empty() {
            let young = cluster.first_since(
                &log.topic,
                log.settings.partitions,
                young_since(&log.settings),
            );
            refuse_old(&behind, &young.await?, &log.settings)?;
        }
        Ok(Self { roaming })
    }

    /// What roaming holds of a conversation.
    pub(super) async fn held(&self, conversation: &ConversationId) -> Result<Held, ResumeError> {
        let Some(head) = self.roaming.head(conversation).await? else {
            return Ok(Held::Nothing);
        };
        let last = head.last_seq;
        let newest = self
            .roaming
            .messages(conversation, (last, last), 1, Order::Descending);
        let newest = newest.await?.pop();
        Ok(match newest {
            Some(stored) => Held::Messages {
                last,
                newest: stored.message.event_id,
            },
            None => Held::Nothing,
        })
    }
}

/// A partition that roaming has not folded to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Behind {
    partition: Partition,
    next: NextOffset,
    records: u64,
}

fn behind(
    checkpoints: &BTreeMap<Partition, Checkpoint>,
    ends: &BTreeMap<Partition, NextOffset>,
) -> Vec<Behind> {
    let of = |(partition, end): (&Partition, &NextOffset)| {
        let next = checkpoints
            .get(partition)
            .map_or(NextOffset::START, |checkpoint| checkpoint.next_offset);
        let records = u64::try_from(end.get() - next.get()).unwrap_or_default();
        (records > 0).then_some(Behind {
            partition: *partition,
            next,
            records,
        })
    };
    ends.iter().filter_map(of).collect()
}

/// Half a window ago: what is younger will be in the window until this import is done. By this machine's clock, which
/// may differ from the brokers' by much less than that.
fn young_since(log: &LogSettings) -> i64 {
    jiff::Timestamp::now().as_millisecond() - log.dedupe.millis / 2
}

/// Refuses where a record that roaming has not folded is older than `young` begins, or where there are so many of
/// them that ids leave the window by their number.
fn refuse_old(
    behind: &[Behind],
    young: &BTreeMap<Partition, NextOffset>,
    log: &LogSettings,
) -> Result<(), ResumeError> {
    for Behind {
        partition,
        next,
        records,
    } in behind
    {
        let is_young = young.get(partition).is_some_and(|first| first <= next);
        if !is_young || *records > log.dedupe.ids / 2 {
            return Err(ResumeError::TooFarBehind {
                partition: *partition,
                next: *next,
                behind: *records,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;
    use tidemark_fold::DedupeWindow;

    use super::*;
    use crate::import::irc::{Channel, read};

    fn events() -> Vec<Event> {
        let channel = Channel {
            conversation: ConversationId::new("irc-tea-2026-03-02").unwrap(),
            name: "tea".to_owned(),
            date: Date::constant(2026, 3, 2),
        };
        // create, message, join, message, leave, message
        let log =
            "[09:00] <anna> hi\n[09:00] <bo> hi\n=== bo [x] has left #tea\n[09:01] <anna> bye";
        read(log.as_bytes(), &channel).events
    }

    fn messages(last: u64, newest: &Event) -> Held {
        Held::Messages {
            last: Seq::new(last),
            newest: newest.id,
        }
    }

    #[test]
    fn an_import_goes_on_after_the_newest_message_held() {
        let events = events();
        assert_eq!(events.len(), 6);
        let held = |held: Held| held_events(&events, &held).unwrap();
        assert_eq!(held(Held::Nothing), 0);
        assert_eq!(held(messages(1, &events[1])), 2);
        assert_eq!(held(messages(2, &events[3])), 4);
        assert_eq!(held(messages(3, &events[5])), 6);
    }

    #[test]
    fn a_conversation_that_holds_something_else_is_refused() {
        let events = events();
        // Somebody else's message, one in between, and more than the file has.
        let stranger = Event {
            id: EventId::new(uuid::Uuid::from_u128(1)),
            ..events[1].clone()
        };
        for held in [
            messages(1, &stranger),
            messages(3, &events[3]),
            messages(9, &events[5]),
        ] {
            let error = held_events(&events, &held).unwrap_err();
            assert!(
                matches!(error, ResumeError::OtherMessages { .. }),
                "{error}"
            );
        }
        assert_eq!(held_events(&[], &messages(1, &stranger)).unwrap(), 0);
    }

    #[test]
    fn what_roaming_has_not_folded_must_be_young_and_few() {
        let partition = Partition::new(2);
        let log = LogSettings {
            partitions: 4,
            dedupe: DedupeWindow {
                millis: 1_000,
                ids: 100,
            },
        };
        let at = |records, first_young: Option<i64>| {
            let behind = Behind {
                partition,
                next: NextOffset::new(10),
                records,
            };
            let young = first_young.map(|first| (partition, NextOffset::new(first)));
            refuse_old(&[behind], &young.into_iter().collect(), &log).is_ok()
        };
        assert!(at(5, Some(10)));
        assert!(at(5, Some(3)));
        assert!(!at(5, Some(11)), "the record at offset 10 is old");
        assert!(!at(5, None), "all records are old");
        assert!(!at(51, Some(10)), "ids leave the window by their number");
    }
}
