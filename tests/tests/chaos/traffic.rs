//! A producer that does not give up: what the log could not take is sent again, with the same ids.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;
use tidemark_e2e::{
    Scene,
    load::{Load, line},
};

/// Lines of one append.
const LINES: usize = 25;

/// Between two appends.
const PAUSE: Duration = Duration::from_millis(400);

/// How long one line may be refused before the log counts as lost.
const PATIENCE: Duration = Duration::from_secs(90);

/// What came of it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Produced {
    pub(crate) acknowledged: usize,
    /// Appends that were tried again.
    pub(crate) tried_again: usize,
    /// The longest that one took to be acknowledged, its further attempts included.
    pub(crate) longest: Duration,
}

/// Appends events of a load until it is told to stop, or they are all there.
pub(crate) async fn produce(scene: &Scene<'_>, load: &Load, stop: &AtomicBool) -> Produced {
    let mut produced = Produced::default();
    for events in load.events.chunks(LINES) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut lines: Vec<Value> = events.iter().map(line).collect();
        let began = Instant::now();
        loop {
            let refused = append(scene, &lines).await;
            produced.acknowledged += lines.len() - refused.len();
            lines = refused;
            if lines.is_empty() {
                break;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "the log has refused these for {PATIENCE:?}: {lines:?}"
            );
            produced.tried_again += 1;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        produced.longest = produced.longest.max(began.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    produced
}

/// Appends lines, and gives those that were not acknowledged.
async fn append(scene: &Scene<'_>, lines: &[Value]) -> Vec<Value> {
    let service = scene.service();
    let answer = service.tries_to_append(lines).await;
    if answer.status == 503 {
        return lines.to_vec();
    }
    let answers = service.has_appended(lines, answer);
    let pairs = lines.iter().zip(answers);
    let refused = pairs.filter(|(_, answer)| {
        let is_there = answer["position"].is_string();
        assert!(is_there || answer["status"] == 503, "{answer}");
        !is_there
    });
    refused.map(|(line, _)| line.clone()).collect()
}
