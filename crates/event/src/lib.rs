//! The language of Tidemark's log: events, their Avro form, the log's topics and keys.
//!
//! Everything that producers and projectors must agree on, and nothing else: no I/O but how Kafka is reached, no
//! storage, and no clock but for the id that [`parse_line`] makes for an event without one.

mod avro;
mod event;
mod id;
mod json;
pub mod kafka;
mod key;
mod limits;
mod log;
mod long;
#[cfg(test)]
mod sample;
mod topic;

pub use avro::{
    DecodeError, EVENT_SCHEMAS, EncodeError, EventSchema, MAX_VALUE_BYTES, Undecodable,
    UnknownSchema, decode, encode,
};
pub use event::*;
pub use id::{ConversationId, DeviceId, EventId, IdError, MAX_ID_BYTES, UserId};
pub use json::{LineError, parse_line, rfc3339, to_json};
pub use key::partition_of;
pub use limits::{
    LimitError, MAX_BODY_BYTES, MAX_CONTENT_TYPE_BYTES, MAX_DRAFT_BYTES, MAX_MENTIONS, MAX_SEQ,
    MAX_TITLE_BYTES, check_limits,
};
pub use log::{Fingerprint, LogTime, NextOffset, Offset, Partition, Position, PositionError, Seq};
pub use topic::{LOG_TOPIC, LogTopic, dead_letter_topic};
