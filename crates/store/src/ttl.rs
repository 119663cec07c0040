//! How long a row may live: never for ever by mistake.

use scylla::{
    frame::response::result::ColumnType,
    serialize::{
        SerializationError,
        value::SerializeValue,
        writers::{CellWriter, WrittenCellProof},
    },
};

/// Whole seconds that a row lives from when the server takes it: from 1 to 20 years, CQL's bounds. There is no 0, which
/// CQL takes for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeToLive(i32);

impl TimeToLive {
    const MAX_SECONDS: i64 = 20 * 365 * 24 * 60 * 60;

    /// So many milliseconds, rounded up; none where the time is over.
    pub(crate) fn of_millis(millis: i64) -> Option<Self> {
        if millis <= 0 {
            return None;
        }
        let seconds = 1 + (millis - 1) / 1_000;
        i32::try_from(seconds.min(Self::MAX_SECONDS)).ok().map(Self)
    }
}

impl SerializeValue for TimeToLive {
    fn serialize<'b>(
        &self,
        column: &ColumnType<'_>,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        self.0.serialize(column, writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_to_live_is_zero_or_beyond_what_cql_takes() {
        let seconds = |millis| TimeToLive::of_millis(millis).map(|ttl| ttl.0);
        assert_eq!(seconds(i64::MIN), None);
        assert_eq!(seconds(0), None);
        assert_eq!(seconds(1), Some(1));
        assert_eq!(seconds(1_000), Some(1));
        assert_eq!(seconds(1_001), Some(2));
        assert_eq!(seconds(i64::MAX), Some(630_720_000));
    }
}
