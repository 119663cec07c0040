//! The topics of a log and how they must be set: what `setup` makes and `doctor` checks.
//!
//! Settings are names and values as Kafka's admin interface takes them. Making a topic is the caller's.

use std::num::NonZeroU16;

/// The log: every event, keyed by conversation.
pub const LOG_TOPIC: &str = "tidemark.events";

/// Where a view sends the records that it refuses or cannot decode.
pub fn dead_letter_topic(view: &str) -> String {
    format!("tidemark.dead.{view}")
}

/// How the log's topic is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogTopic {
    /// Bounds how many workers of a view can share the log. It never changes under a log, so the default,
    /// 64, leaves room.
    pub partitions: NonZeroU16,
    /// On how many brokers a record is stored. Default 3: one may be lost while another is restarted.
    pub replication_factor: NonZeroU16,
    /// How many of them must have a record before its producer (acks=all) is told so. Default 2: an
    /// acknowledged record survives the loss of any one broker, and the log takes writes without it.
    pub min_insync_replicas: NonZeroU16,
    /// The largest batch of records that the log takes, in bytes as sent, after compression. Default 1 MiB,
    /// several times the largest event within the limits. Not above [`MAX_VALUE_BYTES`](crate::MAX_VALUE_BYTES):
    /// nobody could read what a larger one holds.
    pub max_message_bytes: u32,
}

impl Default for LogTopic {
    fn default() -> Self {
        Self {
            partitions: const { NonZeroU16::new(64).unwrap() },
            replication_factor: const { NonZeroU16::new(3).unwrap() },
            min_insync_replicas: const { NonZeroU16::new(2).unwrap() },
            max_message_bytes: 1 << 20,
        }
    }
}

impl LogTopic {
    /// The topic's settings, apart from the numbers of partitions and replicas.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            // The brokers' clocks, not the producers': all time in a fold is a record's append time.
            ("message.timestamp.type", "LogAppendTime".to_owned()),
            // The log is the only truth: nothing in it expires, is compacted or is lost to a lagging replica.
            ("cleanup.policy", "delete".to_owned()),
            ("retention.ms", "-1".to_owned()),
            ("retention.bytes", "-1".to_owned()),
            ("unclean.leader.election.enable", "false".to_owned()),
            ("min.insync.replicas", self.min_insync_replicas.to_string()),
            ("max.message.bytes", self.max_message_bytes.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_log_keeps_everything_and_outlives_a_broker() {
        let log = LogTopic::default();
        assert_eq!(
            (log.partitions.get(), log.replication_factor.get()),
            (64, 3)
        );
        assert!(log.max_message_bytes as usize <= crate::MAX_VALUE_BYTES);
        let settings = log.settings();
        let settings: Vec<(&str, &str)> = settings
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        assert_eq!(
            settings,
            [
                ("message.timestamp.type", "LogAppendTime"),
                ("cleanup.policy", "delete"),
                ("retention.ms", "-1"),
                ("retention.bytes", "-1"),
                ("unclean.leader.election.enable", "false"),
                ("min.insync.replicas", "2"),
                ("max.message.bytes", "1048576"),
            ]
        );
    }

    #[test]
    fn a_views_dead_letters_have_a_topic_of_their_own() {
        assert_eq!(dead_letter_topic("roaming"), "tidemark.dead.roaming");
    }
}
