//! Which partition a conversation's events go to: murmur2 of the key, as the Java clients reckon it.
//!
//! All of a conversation's events share one partition, and so one order, only while every producer agrees
//! on this. librdkafka agrees when its `partitioner` is `murmur2_random`; its default is another.

use std::num::NonZeroU16;

use crate::{ConversationId, Partition};

/// The partition of a conversation's events in a log of `partitions` partitions.
///
/// The number of partitions never changes under a log: every conversation's answer would.
pub fn partition_of(conversation: &ConversationId, partitions: NonZeroU16) -> Partition {
    let positive = murmur2(conversation.as_str().as_bytes()) & i32::MAX;
    Partition::new(positive % i32::from(partitions.get()))
}

/// `org.apache.kafka.common.utils.Utils.murmur2`.
fn murmur2(bytes: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const MIX: u32 = 0x5bd1_e995;

    let mut hash = SEED ^ bytes.len() as u32;
    let (words, tail) = bytes.as_chunks::<4>();
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(MIX);
        word ^= word >> 24;
        hash = hash.wrapping_mul(MIX) ^ word.wrapping_mul(MIX);
    }
    if !tail.is_empty() {
        for (index, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(MIX);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MIX);
    (hash ^ (hash >> 15)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Kafka's own `UtilsTest`: every length of a tail is among them.
    const KAFKA: [(&str, i32); 6] = [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        (
            "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
            -58_897_971,
        ),
        ("abc", 479_470_107),
    ];

    #[test]
    fn the_hash_is_the_java_clients() {
        for (key, hash) in KAFKA {
            assert_eq!(murmur2(key.as_bytes()), hash, "{key}");
        }
    }

    #[test]
    fn a_negative_hash_loses_its_sign_as_in_the_java_clients() {
        // (-973932308 & 0x7fffffff) % 64, and 479470107 % 64.
        for (key, partition) in [("21", 44), ("abc", 27)] {
            let conversation = ConversationId::new(key).unwrap();
            let partitions = NonZeroU16::new(64).unwrap();
            assert_eq!(
                partition_of(&conversation, partitions),
                Partition::new(partition),
                "{key}"
            );
        }
    }

    #[test]
    fn a_log_of_one_partition_has_all() {
        let conversation = ConversationId::new("g1").unwrap();
        assert_eq!(
            partition_of(&conversation, NonZeroU16::MIN),
            Partition::new(0)
        );
    }
}
