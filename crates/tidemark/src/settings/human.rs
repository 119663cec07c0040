//! Lengths of time as people write and read them: `24h`, `30 days`, `1h 30m`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// Reads a length of time. A day has 24 hours, a week seven days; months and years have no fixed length.
///
/// # Errors
/// Says what is wrong, with an example.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let refused = || format!("{text:?} is not a length of time, as in 24h, 30 days or 1h 30m");
    let span: Span = text.trim().parse().map_err(|_| refused())?;
    let signed = span
        .to_duration(SpanRelativeTo::days_are_24_hours())
        .map_err(|_| refused())?;
    Duration::try_from(signed).map_err(|_| refused())
}

/// Writes a length of time in the largest unit that leaves no fraction.
pub(crate) fn show_duration(duration: Duration) -> String {
    const UNITS: [(u128, &str); 4] = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
    ];
    let millis = duration.as_millis();
    let unit = UNITS
        .iter()
        .find(|(unit, _)| millis != 0 && millis.is_multiple_of(*unit));
    match unit {
        Some((unit, letter)) => format!("{}{letter}", millis / unit),
        None => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("24h", 86_400),
            ("1d", 86_400),
            ("30 days", 30 * 86_400),
            ("1w", 7 * 86_400),
            ("1h 30m", 5_400),
            (" 90s ", 90),
            ("PT5M", 300),
            ("0s", 0),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        for text in ["", "24", "h", "-1h", "1 month", "1y", "a while"] {
            let reason = parse_duration(text).unwrap_err();
            assert!(reason.contains("is not a length of time"), "{reason}");
        }
    }

    #[test]
    fn they_are_shown_in_the_largest_whole_unit() {
        for text in ["1d", "25h", "90m", "61s", "1500ms", "0ms"] {
            let shown = parse_duration(text).map(show_duration);
            assert_eq!(shown.as_deref(), Ok(text));
        }
    }
}
