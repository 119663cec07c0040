//! roaming: the permanent record, a row a message.

use tidemark_event::{Event, Payload, Seq};

use crate::{
    Accepted, Effect, GenerationSettings, Head, Message, Need, Needs, Never, Scene, Stop, Stored,
    View, ViewName,
};

/// The roaming view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roaming;

impl View for Roaming {
    const NAME: ViewName = ViewName::Roaming;
    type Extra = ();
    type RowKey = Seq;
    type Row = Stored;
    type PieceKey = Never;
    type Piece = Never;

    fn begin(_: &Accepted<'_>) -> Self::Extra {}

    fn apply(accepted: &Accepted<'_>, scene: &mut Scene<'_, Self>) -> Result<(), Stop<Self>> {
        match &accepted.effect {
            Effect::Sent { seq, message } => {
                let message = Message::sent(accepted, *seq, message);
                scene.rows.put(
                    *seq,
                    Stored {
                        applied: accepted.offset,
                        message,
                    },
                );
            }
            Effect::Edited(edited) => {
                scene.require_message(edited.seq)?;
                scene.rows.change(&edited.seq, accepted.offset, |row| {
                    row.message.edit(edited, accepted.log_time)
                });
            }
            Effect::Recalled(seq) => {
                scene.require_message(*seq)?;
                scene
                    .rows
                    .change(seq, accepted.offset, |row| row.message.recall());
            }
            Effect::Nothing
            | Effect::Created(..)
            | Effect::Changed { .. }
            | Effect::Joined { .. }
            | Effect::Left { .. }
            | Effect::Hidden(_)
            | Effect::Read(_)
            | Effect::MarkedUnread(_)
            | Effect::Settings(_)
            | Effect::Cleared(_)
            | Effect::Removed(_)
            | Effect::Acked { .. } => {}
        }
        Ok(())
    }

    fn foresee(event: &Event, head: &Head<()>, _: &GenerationSettings) -> Needs<Self> {
        let row = match &event.payload {
            Payload::MessageEdited(edited) => edited.seq,
            Payload::MessageRecalled(recalled) => recalled.seq,
            _ => return Needs::<Self>::new(),
        };
        if Seq::FIRST <= row && row <= head.last_seq {
            Needs::<Self>::from([Need::Row(row)])
        } else {
            Needs::<Self>::new()
        }
    }

    fn keeps_in_memory(_: &Seq) -> bool {
        false
    }

    fn weight(row: &Stored) -> usize {
        row.message.weight()
    }
}

impl Scene<'_, Roaming> {
    /// A message below last must have its row.
    fn require_message(&self, seq: Seq) -> Result<(), Stop<Roaming>> {
        self.require_rows([seq])?;
        match self.rows.get(&seq) {
            Some(_) => Ok(()),
            None => Err(Stop::Damaged {
                what: format!("the roaming row of seq {seq}"),
            }),
        }
    }
}
