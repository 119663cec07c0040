//! What a worker may be told. None of it changes what a view holds: such settings are recorded in the store.

use std::{net::SocketAddr, time::Duration};

use tidemark_event::kafka::KafkaSettings;

/// How a worker for one view works.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// How Kafka is reached.
    pub kafka: KafkaSettings,
    /// Where /healthz, /readyz and /metrics are served.
    pub listen: Option<SocketAddr>,
    /// How Kafka divides partitions among workers.
    pub group_protocol: GroupProtocol,
    /// A stable name for this worker in its group, so that a restart keeps its partitions.
    pub static_member_id: Option<String>,
    /// Bounds of one batch.
    pub batch: BatchSettings,
    /// Bytes of conversation state that all partitions of this worker together keep in memory. Batches and Kafka's
    /// own queues come on top.
    pub state_budget_bytes: usize,
    /// How long a worker that is told to stop may take to flush what it has folded.
    pub stop_deadline: Duration,
    /// How long taking over a partition may wait for the store, while the group waits for this worker.
    pub assign_deadline: Duration,
    /// While catching up, the checkpoint is written after at most this long.
    pub checkpoint_interval: Duration,
}

/// How Kafka divides partitions among the workers of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupProtocol {
    /// The classic protocol with the cooperative-sticky assignor.
    #[default]
    Classic,
    /// KIP-848, decided by the broker. Needs Kafka 4.0 or later.
    Consumer,
}

/// Bounds of one batch of a partition.
#[derive(Debug, Clone, Copy)]
pub struct BatchSettings {
    /// The most records.
    pub records: usize,
    /// The most bytes of keys and values; a record that alone is larger still goes through.
    pub bytes: usize,
    /// How long a batch that has begun waits for more, once no record is at hand.
    pub linger: Duration,
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self {
            records: 5_000,
            bytes: 4 << 20,
            linger: Duration::from_millis(2),
        }
    }
}

impl WorkerSettings {
    /// A worker of a Kafka cluster with everything else as it is by default.
    pub fn new(kafka: KafkaSettings) -> Self {
        Self {
            kafka,
            listen: None,
            group_protocol: GroupProtocol::default(),
            static_member_id: None,
            batch: BatchSettings::default(),
            state_budget_bytes: 256 << 20,
            stop_deadline: Duration::from_secs(20),
            assign_deadline: Duration::from_secs(60),
            checkpoint_interval: Duration::from_secs(1),
        }
    }
}
