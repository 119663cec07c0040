//! How long a row may live: never for ever by mistake.

use scylla::{
    frame::response::result::ColumnType,
    serialize::{
        SerializationError,
        value::SerializeValue,
        writers::{CellWriter, WrittenCellProof},
    },
};

/// Whole seconds that a row lives from when the server takes it: from 1 to 20 years, CQL's bounds, and not beyond
/// January 2038, where Cassandra refuses the write unless its storage format is of version 5. There is no 0, which CQL
/// takes for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeToLive(i32);

impl TimeToLive {
    const MAX_SECONDS: i64 = 20 * 365 * 24 * 60 * 60;

    /// The last day that such a Cassandra can name, in seconds since 1970, less a day for clocks that differ.
    const LAST_EXPIRY: i64 = i32::MAX as i64 - 24 * 60 * 60;

    /// So many milliseconds from `now` (milliseconds since 1970) on, rounded up; none where the time is over.
    pub(crate) fn of_millis(millis: i64, now: i64) -> Option<Self> {
        if millis <= 0 {
            return None;
        }
        let seconds = 1 + (millis - 1) / 1_000;
        let until_last = (Self::LAST_EXPIRY - now / 1_000).max(1);
        let seconds = seconds.min(Self::MAX_SECONDS).min(until_last);
        i32::try_from(seconds).ok().map(Self)
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
        let seconds = |millis| TimeToLive::of_millis(millis, 0).map(|ttl| ttl.0);
        assert_eq!(seconds(i64::MIN), None);
        assert_eq!(seconds(0), None);
        assert_eq!(seconds(1), Some(1));
        assert_eq!(seconds(1_000), Some(1));
        assert_eq!(seconds(1_001), Some(2));
        assert_eq!(seconds(i64::MAX), Some(630_720_000));
    }

    /// Found on a real server, which refused a copy of a message whose log time had leapt ahead: the partition would have
    /// stood still.
    #[test]
    fn nothing_expires_beyond_what_every_server_takes() {
        let in_2030 = 1_900_000_000_000;
        let ttl = TimeToLive::of_millis(i64::MAX, in_2030).unwrap();
        let day = 24 * 60 * 60;
        assert_eq!(i64::from(ttl.0) + 1_900_000_000, i64::from(i32::MAX) - day);
        assert_eq!(TimeToLive::of_millis(5_000, in_2030), Some(TimeToLive(5)));
    }
}
