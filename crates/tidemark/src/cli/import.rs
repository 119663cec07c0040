//! `tidemark import`.

use std::{num::NonZeroU64, path::PathBuf, time::Instant};

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::{
    import::{self, Imported, Pace, Source, irc::Counts, refuse_doubles},
    outcome::Outcome,
    output::{Output, Table, grouped},
    progress::bar,
    settings::Settings,
    shutdown,
};

/// The most unreadable lines that are shown.
const UNREADABLE_SHOWN: usize = 10;

/// Bring logs of other systems into the log
#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Format {
    Irc(Irc),
}

/// Import days of an IRC channel's log
///
/// A file is a day, named by its date, and becomes one conversation, as in irc-ubuntu-2005-02-27. Nicks are users, and
/// stay the same users through renames; joins and leaves are membership; `nick: …` mentions. To import a file again
/// adds only what is missing. Lines that cannot be read are counted and left out.
#[derive(Debug, Args)]
#[command(after_help = "Lines:
  [12:34] <nick> text                             a message
  [12:34] * nick text                             an action
  === nick [~user@host.example]  has joined #ubuntu    also: has left
  === nick is now known as other

Examples:
  tidemark import irc logs/2005-02-27.txt
  tidemark import irc --channel rust --rate 2000 logs/*.txt")]
struct Irc {
    /// Logs, each named by its date in UTC, as in 2005-02-27.txt
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The channel that they are of
    #[arg(long, value_name = "NAME", default_value = "ubuntu")]
    channel: String,

    /// The most events a second [default: as many as the log takes]
    #[arg(long, value_name = "NUMBER")]
    rate: Option<NonZeroU64>,

    /// How many files at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    parallel: usize,

    #[command(flatten)]
    output: Output,
}

/// What became of the files.
#[derive(Debug, Serialize)]
struct Report {
    files: usize,
    #[serde(flatten)]
    counts: Counts,
    appended: u64,
    already_there: u64,
    seconds: f64,
    appended_per_second: f64,
}

impl Import {
    pub(crate) async fn run(self, settings: &Settings) -> anyhow::Result<Outcome> {
        match self.format {
            Format::Irc(irc) => irc.run(settings).await,
        }
    }
}

impl Irc {
    async fn run(self, settings: &Settings) -> anyhow::Result<Outcome> {
        let sources = self
            .files
            .iter()
            .map(|file| Source::new(file, &self.channel));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        refuse_doubles(&sources)?;
        let pace = Pace {
            rate: self.rate.map(NonZeroU64::get),
            parallel: self.parallel,
        };
        let shutdown = shutdown::on_signals()?;
        let began = Instant::now();
        let progress = bar(0, "events");
        let imported = import::import(settings, &sources, pace, &progress, &shutdown).await;
        drop(progress);
        let imported = imported?;
        tell_unreadable(&imported);
        let seconds = began.elapsed().as_secs_f64();
        let report = Report {
            files: sources.len(),
            counts: imported.counts,
            appended: imported.appended,
            already_there: imported.held,
            seconds,
            appended_per_second: imported.appended as f64 / seconds,
        };
        self.output.print(&report, show)?;
        Ok(Outcome::Done)
    }
}

fn tell_unreadable(imported: &Imported) {
    for (file, unreadable) in imported.unreadable.iter().take(UNREADABLE_SHOWN) {
        let (line, reason) = (unreadable.line, unreadable.reason);
        eprintln!(
            "{}:{line} {reason}: {}",
            file.display(),
            unreadable.beginning
        );
    }
    let more = imported
        .counts
        .unreadable_lines
        .saturating_sub(UNREADABLE_SHOWN);
    if more > 0 {
        eprintln!("and {more} more lines that cannot be read");
    }
}

fn show(report: &Report) -> String {
    let Counts {
        messages,
        joins,
        leaves,
        renames,
        mentions,
        unreadable_lines,
    } = report.counts;
    let counts = [
        ("files", report.files),
        ("messages", messages),
        ("joins", joins),
        ("leaves", leaves),
        ("renames", renames),
        ("mentions", mentions),
        ("unreadable lines", unreadable_lines),
    ];
    let counts = counts.map(|(what, count)| (what, count as u64));
    let events = [
        ("events appended", report.appended),
        ("there already", report.already_there),
    ];
    let mut table = Table::default();
    for (what, count) in counts.into_iter().chain(events) {
        table.push([what.to_owned(), grouped(count)]);
    }
    format!(
        "{}in {:.1} s, {} events a second\n",
        table.show(),
        report.seconds,
        grouped(report.appended_per_second as u64)
    )
}
