//! Watches how far the views are, from outside: by what the store and the log say.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use tidemark_e2e::{Town, until};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(300);

/// How long everything may take to come right after a fault.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is known of each view.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    views: Mutex<BTreeMap<String, Seen>>,
    stop: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    folded: i64,
    lag: u64,
    /// Since when it has lag and has folded nothing.
    still_since: Option<Instant>,
    longest_still: Duration,
}

impl Watch {
    /// Looks until it is told to stop.
    pub(crate) async fn run(&self, town: &Town) {
        while !self.stop.load(Ordering::Relaxed) {
            // Without an answer nobody knows: a view that stands still is found at the next one.
            let _ = self.look(town).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Lag by view, in records.
    async fn look(&self, town: &Town) -> Result<BTreeMap<String, u64>, String> {
        let (code, output, errors) = town.command(&["views", "--output", "json"], "").await;
        if code != 0 {
            return Err(errors);
        }
        let found: Value = serde_json::from_str(&output).map_err(|error| error.to_string())?;
        let mut views = self.views.lock().unwrap();
        for generation in found["generations"].as_array().unwrap() {
            let name = generation["view"].as_str().unwrap().to_owned();
            let partitions = generation["partitions"].as_array().unwrap();
            let folded = partitions
                .iter()
                .filter_map(|partition| partition["next_offset"].as_i64())
                .sum();
            let lag = generation["lag"].as_u64().unwrap();
            let seen = views.entry(name).or_insert(Seen {
                folded,
                lag,
                still_since: None,
                longest_still: Duration::ZERO,
            });
            let stands_still = lag > 0 && seen.lag > 0 && folded == seen.folded;
            let now = Instant::now();
            seen.still_since = stands_still.then(|| seen.still_since.unwrap_or(now));
            let still = seen.still_since.map_or(Duration::ZERO, |since| now - since);
            seen.longest_still = seen.longest_still.max(still);
            (seen.folded, seen.lag) = (folded, lag);
        }
        Ok(views
            .iter()
            .map(|(view, seen)| (view.clone(), seen.lag))
            .collect())
    }

    /// Waits until all views have folded everything, and says how long that took.
    pub(crate) async fn caught_up(&self, town: &Town) -> Duration {
        let began = Instant::now();
        until("lag 0 in all views", PATIENCE, async || {
            match self.look(town).await {
                Ok(lags) if lags.len() == 3 && lags.values().all(|lag| *lag == 0) => Ok(()),
                other => Err(other),
            }
        })
        .await;
        began.elapsed()
    }

    /// The longest that each view stood still, since the last time this was asked.
    pub(crate) fn longest_still(&self) -> Vec<(String, Duration)> {
        let mut views = self.views.lock().unwrap();
        let taken = views.iter_mut().map(|(view, seen)| {
            let longest = std::mem::take(&mut seen.longest_still);
            (view.clone(), longest)
        });
        taken.collect()
    }
}
