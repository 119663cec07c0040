//! `tidemark produce`.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _},
    path::PathBuf,
    time::Instant,
};

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use tidemark_event::{Event, parse_line};
use tidemark_gateway::{AppendError, Appender};
use tidemark_store::Store;
use tokio::sync::mpsc;

use crate::{
    append,
    outcome::{Outcome, describe},
    output::{Output, counted},
    progress::{Progress, counter},
    settings::Settings,
};

/// The longest line that is read: an event within the limits is shorter, however much of it is escaped.
const MAX_LINE_BYTES: usize = 4 << 20;

/// Append events, one JSON object a line, to the log
///
/// Lines are those of POST /v1/events and of `tidemark tail --events`. A bad line is told with its number and left
/// out, the others are appended, and the exit code is 1. A line with an event_id may be appended again: within the
/// log's dedupe window that changes nothing.
#[derive(Debug, Args)]
#[command(after_help = r#"Examples:
  tidemark produce events.jsonl
  echo '{"conversation_id": "g1", "actor": "bo", "type": "MessageSent", "payload": {"body": "hi"}}' | tidemark produce
  tidemark tail --events --partition 3 | TIDEMARK_KAFKA=other:9092 tidemark produce"#)]
pub(crate) struct Produce {
    /// File to read [default: standard input]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// What became of the lines.
#[derive(Debug, Default, Serialize)]
struct Report {
    appended: u64,
    bad_lines: u64,
    seconds: f64,
}

/// A line, and its number from 1.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    number: u64,
    text: Result<String, LineProblem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum LineProblem {
    #[error("the line is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    #[error("the line is not UTF-8")]
    NotUtf8,
}

impl Produce {
    pub(crate) async fn run(self, settings: &Settings) -> anyhow::Result<Outcome> {
        let store = Store::connect(&settings.store).await?;
        let appender = append::open(&settings.kafka, &store).await?;
        let input: Box<dyn BufRead + Send> = match &self.file {
            Some(path) => {
                let file =
                    File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
                Box::new(BufReader::new(file))
            }
            None => Box::new(BufReader::new(std::io::stdin())),
        };
        let began = Instant::now();
        let mut report = Report::default();
        let progress = counter("events");
        let result = produce(&appender, read_lines(input), &progress, &mut report).await;
        drop(progress);
        report.seconds = began.elapsed().as_secs_f64();
        self.output.print(&report, show)?;
        result?;
        Ok(Outcome::difference_if(report.bad_lines > 0))
    }
}

fn show(report: &Report) -> String {
    format!(
        "{} appended, {}, {:.1} s\n",
        counted(report.appended, "event"),
        counted(report.bad_lines, "bad line"),
        report.seconds
    )
}

/// Appends lines as they come: as many together as there are, so that a slow source is not waited for.
async fn produce(
    appender: &Appender,
    mut lines: mpsc::Receiver<std::io::Result<Line>>,
    progress: &Progress,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut chunk = Vec::new();
    while lines.recv_many(&mut chunk, append::CHUNK).await > 0 {
        let mut events: Vec<(u64, Event)> = Vec::with_capacity(chunk.len());
        let mut read_error = None;
        for line in chunk.drain(..) {
            match line {
                Ok(line) => match line
                    .text
                    .map_err(|problem| problem.to_string())
                    .and_then(parse)
                {
                    Ok(event) => events.push((line.number, event)),
                    Err(reason) => report.refuse(line.number, &reason, progress),
                },
                Err(error) => read_error = Some(error),
            }
        }
        let answers = appender
            .append_all(events.iter().map(|(_, event)| event))
            .await;
        for ((number, _), answer) in events.iter().zip(answers) {
            match answer {
                Ok(_) => {
                    report.appended += 1;
                    progress.advance(1);
                }
                Err(error @ AppendError::Unwritable { .. }) => {
                    report.refuse(*number, &describe(&error), progress);
                }
                Err(error) => {
                    return Err(error).with_context(|| format!("stopped at line {number}"));
                }
            }
        }
        if let Some(error) = read_error {
            return Err(error).context("cannot read on");
        }
    }
    Ok(())
}

fn parse(text: String) -> Result<Event, String> {
    parse_line(&text).map_err(|error| describe(&error))
}

impl Report {
    fn refuse(&mut self, number: u64, reason: &str, progress: &Progress) {
        self.bad_lines += 1;
        progress.tell(&format!("line {number}: {reason}"));
    }
}

/// Reads lines on a thread of its own: standard input cannot be read otherwise without blocking others. Empty lines
/// are left out.
fn read_lines(mut input: Box<dyn BufRead + Send>) -> mpsc::Receiver<std::io::Result<Line>> {
    let (sender, lines) = mpsc::channel(append::CHUNK);
    std::thread::spawn(move || {
        let mut number = 0;
        loop {
            let line = read_line(&mut input);
            number += 1;
            let line = match line {
                Ok(None) => return,
                Ok(Some(Ok(text))) if text.trim().is_empty() => continue,
                Ok(Some(text)) => Ok(Line { number, text }),
                Err(error) => Err(error),
            };
            let is_last = line.is_err();
            if sender.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    lines
}

/// The next line; none at the end. What is beyond the limit of a line is passed over.
fn read_line(input: &mut dyn BufRead) -> std::io::Result<Option<Result<String, LineProblem>>> {
    let mut bytes = Vec::new();
    let limit = MAX_LINE_BYTES as u64 + 1;
    if input.take(limit).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() > MAX_LINE_BYTES && !bytes.ends_with(b"\n") {
        input.skip_until(b'\n')?;
        return Ok(Some(Err(LineProblem::TooLong)));
    }
    Ok(Some(
        String::from_utf8(bytes).map_err(|_| LineProblem::NotUtf8),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(text: &[u8]) -> Vec<Line> {
        let mut lines = read_lines(Box::new(std::io::Cursor::new(text.to_vec())));
        let mut read = Vec::new();
        while let Some(line) = lines.blocking_recv() {
            read.push(line.unwrap());
        }
        read
    }

    fn line(number: u64, text: &str) -> Line {
        Line {
            number,
            text: Ok(text.to_owned()),
        }
    }

    #[test]
    fn lines_are_numbered_and_empty_ones_left_out() {
        assert_eq!(lines_of(b"a\n\n \r\nb"), [line(1, "a\n"), line(4, "b")]);
        assert_eq!(lines_of(b""), []);
    }

    #[test]
    fn a_line_that_is_too_long_or_no_text_is_told_and_the_next_is_read() {
        let mut text = b"a\xff\n".to_vec();
        text.extend(vec![b'x'; 2 * MAX_LINE_BYTES]);
        text.extend(b"\nb");
        let problem = |number, problem| Line {
            number,
            text: Err(problem),
        };
        let expected = [
            problem(1, LineProblem::NotUtf8),
            problem(2, LineProblem::TooLong),
            line(3, "b"),
        ];
        assert_eq!(lines_of(&text), expected);
    }
}
