//! How Kafka is reached: one place for what every client of the log shares.
//!
//! Security, timeouts and tuning are librdkafka's own properties, passed through as they are, so that whatever its
//! documentation says holds here too. What Tidemark's correctness rests on is set last and cannot be overridden.

use std::collections::BTreeMap;

use rdkafka::{
    ClientConfig, ClientContext,
    consumer::ConsumerContext,
    error::{KafkaError, RDKafkaErrorCode},
};

/// How to reach the Kafka cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaSettings {
    /// `host:port`, several with commas between.
    pub bootstrap_servers: String,
    /// Further librdkafka properties by name, such as `security.protocol` or `sasl.password`.
    pub properties: BTreeMap<String, String>,
}

/// Properties that decide whether messages are lost, doubled or reordered.
const FIXED_FOR_PRODUCERS: [(&str, &str); 3] = [
    ("enable.idempotence", "true"),
    ("acks", "all"),
    ("partitioner", "murmur2_random"),
];

/// Properties by which a view, and not Kafka, decides what is read.
const FIXED_FOR_CONSUMERS: [(&str, &str); 4] = [
    ("auto.offset.reset", "error"),
    ("enable.auto.offset.store", "false"),
    ("isolation.level", "read_committed"),
    ("enable.partition.eof", "true"),
];

impl KafkaSettings {
    /// A cluster at `bootstrap_servers` without further properties.
    pub fn at(bootstrap_servers: impl Into<String>) -> Self {
        Self {
            bootstrap_servers: bootstrap_servers.into(),
            properties: BTreeMap::new(),
        }
    }

    /// For clients that neither produce nor consume: topics, metadata, offsets.
    pub fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.bootstrap_servers)
            .set("client.id", "tidemark");
        for (name, value) in &self.properties {
            config.set(name, value);
        }
        config
    }

    /// For producers: idempotent, acknowledged by all in-sync replicas.
    pub fn producer(&self) -> ClientConfig {
        let mut config = self.client();
        for (name, value) in FIXED_FOR_PRODUCERS {
            config.set(name, value);
        }
        config
    }

    /// For consumers of `group`: they start where they are told, and never guess.
    pub fn consumer(&self, group: &str) -> ClientConfig {
        let mut config = self.client();
        config.set("group.id", group);
        for (name, value) in FIXED_FOR_CONSUMERS {
            config.set(name, value);
        }
        config
    }
}

/// For consumers that read by themselves, in no group: tells of trouble, and takes the end of a partition for what it
/// is, which librdkafka reports as an error.
#[derive(Debug, Clone, Copy, Default)]
pub struct SelfAssigned;

impl ClientContext for SelfAssigned {
    fn error(&self, error: KafkaError, reason: &str) {
        if error.rdkafka_error_code() != Some(RDKafkaErrorCode::PartitionEOF) {
            tracing::warn!(%error, reason, "Kafka is in trouble");
        }
    }
}

impl ConsumerContext for SelfAssigned {}
