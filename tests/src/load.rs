//! Events drawn at random by the model's generator, as load: what people do, and now and then what they may not.

use serde_json::{Value, json};
use tidemark_event::{Event, check_limits, to_json};
use tidemark_model::generate;

use crate::{Scene, audit::Cast};

/// Events of a scene's people, in order.
#[derive(Debug)]
pub struct Load {
    cast: generate::Cast,
    /// The events, in the scene's own names.
    pub events: Vec<Event>,
}

impl Load {
    /// As many events as that, always the same for a seed.
    ///
    /// Few enough people and conversations that everything meets everything, among limits that they pass. What no
    /// producer may append, being too large, is left out.
    pub fn of(seed: u64, len: usize) -> Self {
        let cast = generate::Cast {
            conversations: 4,
            users: 10,
            ..generate::Cast::SMALL
        };
        let events = cast
            .log_from_seed(seed, len)
            .into_iter()
            .map(|logged| logged.event);
        let events = events.filter(|event| check_limits(event).is_ok()).collect();
        Self { cast, events }
    }

    /// Appends a stretch of it in bulk, whatever the folds will think of it.
    pub async fn append(&self, scene: &Scene<'_>, stretch: std::ops::Range<usize>) {
        let end = stretch.end.min(self.events.len());
        let lines: Vec<Value> = self.events[stretch.start.min(end)..end]
            .iter()
            .map(line)
            .collect();
        for answer in scene.service().appends(&lines).await {
            assert!(answer["position"].is_string(), "{answer}");
        }
    }

    /// Who and what there is in it.
    pub fn cast(&self) -> Cast {
        Cast {
            people: self
                .cast
                .users()
                .iter()
                .map(|id| id.as_str().to_owned())
                .collect(),
            conversations: self
                .cast
                .conversations()
                .iter()
                .map(|id| id.as_str().to_owned())
                .collect(),
            devices: self
                .cast
                .devices()
                .iter()
                .map(|id| id.as_str().to_owned())
                .collect(),
        }
    }
}

/// An event as a line of a bulk append.
pub fn line(event: &Event) -> Value {
    let mut line = to_json(event);
    // Spelled out: a line that does not say counts as a service's.
    line["by_service"] = json!(event.by_service);
    line
}
