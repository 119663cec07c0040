//! How far something is that takes long: a bar on a terminal, nothing elsewhere.

use std::{fmt::Write, time::Duration};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// How often a bar moves by itself.
const TICK: Duration = Duration::from_millis(100);

/// A bar over `total` things of a kind. It clears itself when it is dropped.
pub(crate) fn bar(total: u64, what: &str) -> Progress {
    let template =
        format!("{{bar:30}} {{human_pos}} of {{human_len}} {what}, {{rate}}, {{eta}} left {{msg}}");
    styled(ProgressBar::new(total), &template)
}

/// A count of things of a kind, of which nobody knows how many there will be.
pub(crate) fn counter(what: &str) -> Progress {
    let template = format!("{{spinner}} {{human_pos}} {what}, {{rate}}");
    styled(ProgressBar::no_length(), &template)
}

/// A word about what is being waited for.
pub(crate) fn spinner(message: &str) -> Progress {
    let progress = styled(ProgressBar::no_length(), "{spinner} {msg}");
    progress.say(message);
    progress
}

fn styled(bar: ProgressBar, template: &str) -> Progress {
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let style = style.with_key("rate", |state: &ProgressState, output: &mut dyn Write| {
        // A bar that cannot be written is no bar; there is nobody to tell.
        let _ = write!(output, "{:.0} a second", state.per_sec());
    });
    bar.set_style(style);
    bar.enable_steady_tick(TICK);
    Progress(bar)
}

/// Something on its way.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// So many more are done.
    pub(crate) fn advance(&self, by: u64) {
        self.0.inc(by);
    }

    /// There are so many more to do.
    pub(crate) fn expect_more(&self, count: u64) {
        self.0.inc_length(count);
    }

    /// There are so many in all, as far as is known.
    pub(crate) fn expect_length(&self, count: u64) {
        self.0.set_length(count);
    }

    /// So many are done.
    pub(crate) fn reach(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Says what is going on.
    pub(crate) fn say(&self, message: &str) {
        self.0.set_message(message.to_owned());
    }

    /// Prints a line to standard error without tearing the bar.
    pub(crate) fn tell(&self, line: &str) {
        self.0.suspend(|| eprintln!("{line}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
