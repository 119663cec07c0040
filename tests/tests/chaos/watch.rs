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

/// What is known of each partition of each view.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    partitions: Mutex<BTreeMap<(String, i64), Seen>>,
    stop: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    next_offset: i64,
    lag: u64,
    /// When it was last seen to have moved on, or to have nothing to do.
    moved_at: Instant,
    /// The longest from one such moment to the next, with something to do at either: an upper bound, by the time that
    /// passes between two looks.
    longest_still: Duration,
}

impl Seen {
    fn look(&mut self, next_offset: i64, lag: u64) {
        let now = Instant::now();
        if lag > 0 || self.lag > 0 {
            self.longest_still = self.longest_still.max(now - self.moved_at);
        }
        if lag == 0 || next_offset != self.next_offset {
            self.moved_at = now;
        }
        (self.next_offset, self.lag) = (next_offset, lag);
    }
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
        let mut known = self.partitions.lock().unwrap();
        let mut lags = BTreeMap::new();
        for generation in found["generations"].as_array().unwrap() {
            let view = generation["view"].as_str().unwrap();
            lags.insert(view.to_owned(), generation["lag"].as_u64().unwrap());
            for partition in generation["partitions"].as_array().unwrap() {
                let number = partition["partition"].as_i64().unwrap();
                let next_offset = partition["next_offset"].as_i64().unwrap();
                let lag = partition["lag"].as_u64().unwrap();
                let seen = known.entry((view.to_owned(), number)).or_insert(Seen {
                    next_offset,
                    lag,
                    moved_at: Instant::now(),
                    longest_still: Duration::ZERO,
                });
                seen.look(next_offset, lag);
            }
        }
        Ok(lags)
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

    /// The longest that a partition of each view stood still, since the last time this was asked.
    pub(crate) fn longest_still(&self) -> BTreeMap<String, Duration> {
        let mut longest = BTreeMap::<String, Duration>::new();
        for ((view, _), seen) in self.partitions.lock().unwrap().iter_mut() {
            let still = std::mem::take(&mut seen.longest_still);
            let of_view = longest.entry(view.clone()).or_default();
            *of_view = still.max(*of_view);
        }
        longest
    }
}
