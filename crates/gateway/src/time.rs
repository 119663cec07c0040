//! Times as clients read them: RFC 3339 in UTC, always with milliseconds.

use jiff::Timestamp;
use serde::Serialize;
use tidemark_event::LogTime;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, schema::Type},
};

/// 0000-01-01T00:00:00Z: RFC 3339 has no earlier time.
const YEAR_ZERO: i64 = -62_167_219_200_000;

/// A time in milliseconds since 1970, in the years that RFC 3339 can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(Timestamp);

impl Time {
    /// A time that came from outside; none outside the years 0 to 9999.
    pub(crate) fn of_millis(millis: i64) -> Option<Self> {
        if millis < YEAR_ZERO {
            return None;
        }
        Timestamp::from_millisecond(millis).ok().map(Self)
    }
}

impl From<LogTime> for Time {
    /// A broker's clock, which cannot be before 1970; beyond the year 9999 it stands still.
    fn from(log_time: LogTime) -> Self {
        Self::of_millis(log_time.millis()).unwrap_or(Self(Timestamp::MAX))
    }
}

impl Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.strftime("%Y-%m-%dT%H:%M:%S.%3fZ"))
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .examples(["2026-03-01T09:30:00.000Z"])
            .into()
    }
}

impl ToSchema for Time {}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(time: Time) -> String {
        serde_json::to_value(time)
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn a_time_always_has_its_milliseconds() {
        let time = |millis| text(LogTime::from_millis(millis).into());
        assert_eq!(time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(1_772_357_400_123), "2026-03-01T09:30:00.123Z");
        assert_eq!(time(i64::MAX), "9999-12-30T22:00:00.999Z");
    }

    #[test]
    fn a_clock_of_a_client_may_say_what_cannot_be_written() {
        assert_eq!(
            Time::of_millis(YEAR_ZERO).map(text).unwrap(),
            "0000-01-01T00:00:00.000Z"
        );
        assert_eq!(Time::of_millis(YEAR_ZERO - 1), None);
        assert_eq!(Time::of_millis(i64::MAX), None);
    }
}
