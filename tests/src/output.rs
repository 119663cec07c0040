//! What the processes write, and the lines of it that nobody expected.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// A log file that is read piece by piece.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    read_to: u64,
}

impl Output {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, read_to: 0 }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The whole lines that were written since the last call and tell that something is wrong.
    pub(crate) fn new_alarms(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        let mut file = File::open(&self.path).expect("a process's log is there");
        file.seek(SeekFrom::Start(self.read_to))
            .expect("its log can be read");
        file.read_to_end(&mut bytes).expect("its log can be read");
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        self.read_to += whole as u64;
        let text = String::from_utf8_lossy(&bytes[..whole]);
        text.lines()
            .filter(|line| is_alarm(line))
            .map(str::to_owned)
            .collect()
    }

    /// The end of the log, for a failure's message.
    pub(crate) fn tail(&self) -> String {
        const LINES: usize = 30;
        let text = std::fs::read(&self.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

/// A line at WARN or ERROR in the text form of the logs, or of a panic.
fn is_alarm(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let level = words.nth(1);
    matches!(level, Some("WARN" | "ERROR"))
        || line.contains("panicked at")
        || line.starts_with("error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_told_by_their_level() {
        for line in [
            "2026-05-01T12:00:00.000000Z  WARN tidemark_gateway::problem: the store could not be read",
            "2026-05-01T12:00:00.000000Z ERROR partition{view=inbox}: tidemark_projector: it stands still",
            "thread 'main' panicked at src/main.rs:1:1:",
        ] {
            assert!(is_alarm(line), "{line}");
        }
        assert!(!is_alarm(
            "2026-05-01T12:00:00.000000Z  INFO tidemark: a WARN is not an ERROR"
        ));
    }
}
