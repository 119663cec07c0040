//! The timestamp that a cell is written with: rule 3, *the newest prefix wins*.
//!
//! It is made from an offset and from nothing else. So the same event folded again writes the same timestamp, a
//! worker that was cut off and replaced writes older ones and loses, and no clock has a say.

use scylla::{
    frame::response::result::ColumnType,
    serialize::{
        SerializationError,
        value::SerializeValue,
        writers::{CellWriter, WrittenCellProof},
    },
};
use tidemark_event::{NextOffset, Offset};

/// Microseconds since 1970 that CQL orders a cell's writes by: a constant in September 2001, plus an offset. It stays
/// in the past for the first 700 million million records of a partition, so that whatever a server stamps with its own
/// clock (a truncation, an operator's repair by hand) is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteTimestamp(i64);

impl WriteTimestamp {
    const BASE: i64 = 1_000_000_000_000_000;

    /// The timestamp of a row or piece whose newest folded event is at `applied`.
    pub const fn applied(applied: Offset) -> Self {
        Self(Self::BASE + applied.get())
    }

    /// The timestamp of a checkpoint at `next`, and of whatever is deleted because of it: newer than all that was
    /// written by records before it.
    pub const fn checkpoint(next: NextOffset) -> Self {
        Self(Self::BASE + next.get())
    }

    /// As CQL has it.
    pub const fn micros(self) -> i64 {
        self.0
    }
}

impl SerializeValue for WriteTimestamp {
    fn serialize<'b>(
        &self,
        column: &ColumnType<'_>,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        #[cfg(feature = "planted-faults")]
        {
            use tidemark_fold::planted::{Fault, is_planted, ticks};
            if is_planted(Fault::RowsWithoutTimestamps) {
                return (Self::BASE + ticks()).serialize(column, writer);
            }
        }
        self.0.serialize(column, writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_offset_has_a_later_timestamp_and_none_is_in_the_future() {
        let (early, late) = (Offset::new(7), Offset::new(8));
        assert!(WriteTimestamp::applied(early) < WriteTimestamp::applied(late));
        assert!(
            WriteTimestamp::applied(early) < WriteTimestamp::checkpoint(NextOffset::after(early))
        );
        let far = WriteTimestamp::applied(Offset::new(700_000_000_000_000));
        let year_2026 = 1_767_225_600_000_000;
        assert!(far.0 < year_2026);
    }
}
