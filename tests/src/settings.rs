//! What a town is set up with.

use std::time::Duration;

/// Settings of a town's log and of the first generation of its views.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Partitions of the log.
    pub partitions: u16,
    /// How long an accepted event id is remembered, in log time.
    pub dedupe_window: Duration,
    /// Up to so many members messages are copied into inboxes.
    pub copy_limit: usize,
    /// Up to so many members every message brings every member's session row up to date.
    pub fan_out_limit: usize,
    /// What inbox copies expire by together.
    pub inbox_period: Duration,
    /// How long they are kept after the end of their period.
    pub inbox_ttl: Duration,
    /// How many gateways there are.
    pub gateways: usize,
    /// A worker that is gone without a word is replaced after six seconds, the least that a broker allows, rather than
    /// after a worker's own ten. A machine that is very busy may take a worker for gone that is not.
    pub misses_workers_soon: bool,
}

impl Default for Settings {
    /// Limits so small that a few people pass them; times so long that nothing expires.
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self {
            partitions: 4,
            dedupe_window: DAY,
            copy_limit: 4,
            fan_out_limit: 8,
            inbox_period: DAY * 7,
            inbox_ttl: DAY * 30,
            gateways: 1,
            misses_workers_soon: false,
        }
    }
}

impl Settings {
    /// The same, as arguments of `tidemark setup`.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let millis = |duration: Duration| format!("{}ms", duration.as_millis());
        let pairs = [
            ("--partitions", self.partitions.to_string()),
            ("--dedupe-window", millis(self.dedupe_window)),
            ("--copy-limit", self.copy_limit.to_string()),
            ("--fan-out-limit", self.fan_out_limit.to_string()),
            ("--inbox-period", millis(self.inbox_period)),
            ("--inbox-ttl", millis(self.inbox_ttl)),
        ];
        pairs
            .into_iter()
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect()
    }

    /// The same, as far as the naive model's answers depend on it.
    pub fn of_model(&self) -> tidemark_model::Settings {
        tidemark_model::Settings {
            dedupe_window_millis: self.dedupe_window.as_millis() as i64,
            copy_limit: self.copy_limit,
            ..tidemark_model::Settings::default()
        }
    }
}
