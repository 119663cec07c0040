//! What commands print as their result: for people in aligned columns, or as JSON.

use std::io::Write;

use clap::{Args, ValueEnum};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// The flag of commands that list or report.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// How the result is printed, to standard output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

impl Output {
    /// Prints a report: as JSON, or as the text that `show` makes of it.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub(crate) fn print<R: Serialize>(
        self,
        report: &R,
        show: impl FnOnce(&R) -> String,
    ) -> std::io::Result<()> {
        let text = match self.output {
            Format::Text => show(report),
            Format::Json => {
                let mut json = serde_json::to_string_pretty(report)?;
                json.push('\n');
                json
            }
        };
        std::io::stdout().lock().write_all(text.as_bytes())
    }
}

/// Rows whose columns are aligned.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: usize = 2;

impl Table {
    /// A table under these headings.
    pub(crate) fn with_headings<const N: usize>(headings: [&str; N]) -> Self {
        let mut table = Self::default();
        table.push(headings.map(str::to_owned));
        table
    }

    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    /// The table as lines.
    pub(crate) fn show(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.width()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(width + GAP - cell.width()));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// So many of a thing, as in 1 partition or 64 partitions.
pub(crate) fn counted(number: impl Into<u64>, thing: &str) -> String {
    match number.into() {
        1 => format!("1 {thing}"),
        number => format!("{} {thing}s", grouped(number)),
    }
}

/// A number with its thousands set apart, as in 54,310.
pub(crate) fn grouped(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_looks() {
        let mut table = Table::with_headings(["who", "what"]);
        table.push(["Bo", "tea"].map(str::to_owned));
        table.push(["Jürgen 🎉", ""].map(str::to_owned));
        assert_eq!(table.show(), "who        what\nBo         tea\nJürgen 🎉\n");
    }

    #[test]
    fn things_are_counted_as_people_count_them() {
        let shown = [0_u64, 1, 2_000].map(|number| counted(number, "event"));
        assert_eq!(shown, ["0 events", "1 event", "2,000 events"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        let shown = [0_u64, 999, 1_000, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
    }
}
