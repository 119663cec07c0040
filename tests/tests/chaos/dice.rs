//! Draws victims and moments from a seed, so that a run can be tried again; real servers never run quite the same twice.

use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct Dice(AtomicU64);

impl Dice {
    /// From TIDEMARK_CHAOS_SEED, or from the clock.
    pub(crate) fn from_environment() -> Self {
        let named = std::env::var("TIDEMARK_CHAOS_SEED").ok();
        let seed = named.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |now| now.as_secs())
        });
        println!("TIDEMARK_CHAOS_SEED={seed}");
        Self(AtomicU64::new(seed))
    }

    /// A number below `bound`: a step of splitmix64.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
