//! Events as bytes in the log: written by the newest schema, read by every released one.
//!
//! A value is Avro's single-object encoding: `C3 01`, the fingerprint of the writer's schema in eight bytes,
//! little-endian, then the datum. The schemas are the files in `schemas/avro/`, built in here.
//!
//! The one distinction that matters to a reader is [`Undecodable`] against [`UnknownSchema`]. The first can
//! never become an event and is dead-lettered by every view alike. The second may be an event to a later
//! release: skipping it in one view would shift that view's seqs, so a partition stops there. Which records are
//! undecodable must not change between releases, since clients hold the seqs that follow from it.
//!
//! Reading is total: any bytes give an event or an error, and what is allocated on the way is bounded by
//! [`MAX_VALUE_BYTES`], whatever lengths the bytes claim.
//!
//! Two traits of apache-avro 0.22 shape this file. Its direct serde path does not resolve one schema to
//! another, so each released schema has a reader of its own, and the types that are read into must know
//! every field of every one of them. And its fingerprints differ from the specification's where a long has a
//! logical type, so fingerprints are constants here, checked against the files in a test.

use std::sync::LazyLock;

use apache_avro::{
    Schema, reader::datum::GenericDatumReader, util::max_allocation_bytes,
    writer::datum::GenericDatumWriter,
};
use serde::{Deserialize, Serialize};

use crate::{ConversationId, Event, EventId, LimitError, Payload, UserId, limits::check_seq};

/// The largest value that is written or read, header included. A larger one under a known schema is
/// undecodable: a batch compressed by its producer can hold values beyond the log's `max.message.bytes`.
pub const MAX_VALUE_BYTES: usize = 4 << 20;

/// A released version of the envelope that events travel in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSchema {
    /// The number in the name of its file, `event-v1.avsc`.
    pub version: u32,
    /// The 64-bit Rabin fingerprint of its canonical form, as the Avro specification defines both.
    pub fingerprint: u64,
    /// The file.
    pub text: &'static str,
}

/// Every released schema, the oldest first. [`encode`] writes by the last.
pub const EVENT_SCHEMAS: [EventSchema; 1] = [EventSchema {
    version: 1,
    fingerprint: 0x3378_8ec8_3bc9_c305,
    text: include_str!("../../../schemas/avro/event-v1.avsc"),
}];

const CURRENT: usize = EVENT_SCHEMAS.len() - 1;

/// What a single-object encoding begins with, before the fingerprint.
const SINGLE_OBJECT: [u8; 2] = [0xc3, 0x01];
/// What Confluent's framing begins with, before a registry's id of the schema.
const CONFLUENT: u8 = 0x00;

/// Why an event cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A seq is beyond what Avro's long holds.
    #[error(transparent)]
    Seq(LimitError),
    /// Nobody would read it.
    #[error("the encoded event has {bytes} bytes, more than {MAX_VALUE_BYTES}")]
    TooLong {
        /// Its length, header included.
        bytes: usize,
    },
    /// The event does not fit the newest schema.
    #[error("the event does not fit version {version} of its schema", version = EVENT_SCHEMAS[CURRENT].version)]
    Schema {
        /// What does not fit.
        source: apache_avro::Error,
    },
}

/// Why a record gives no event.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It can never become one.
    #[error(transparent)]
    Undecodable(#[from] Undecodable),
    /// A later release, or one with a schema registry, may read it.
    #[error(transparent)]
    UnknownSchema(#[from] UnknownSchema),
}

/// Why a record can never become an event.
#[derive(Debug, thiserror::Error)]
pub enum Undecodable {
    /// It is a tombstone, or was produced by hand.
    #[error("the record has no value")]
    NoValue,
    /// It was not written as an event at all.
    #[error(
        "the value does not begin as an event does, with a marker and the fingerprint of its schema"
    )]
    NoHeader,
    /// See [`MAX_VALUE_BYTES`].
    #[error("the value has {bytes} bytes, more than {MAX_VALUE_BYTES}")]
    TooLong {
        /// Its length, header included.
        bytes: usize,
    },
    /// It is cut off or garbled, or holds an id or a seq that cannot be one.
    #[error("the value is not an event of version {version}")]
    Body {
        /// The version that its header claims.
        version: u32,
        /// What is wrong with it.
        source: apache_avro::Error,
    },
    /// The event ends before the value does.
    #[error("{count} bytes follow the event")]
    TrailingBytes {
        /// How many.
        count: usize,
    },
    /// Its place in the log rests on chance.
    #[error("the record has no key; the event's conversation is {conversation}")]
    NoKey {
        /// The conversation that the key should have named.
        conversation: ConversationId,
    },
    /// It may stand in another partition than its conversation, out of order.
    #[error("the record's key is not the event's conversation, {conversation}")]
    OtherKey {
        /// The conversation that the key should have named.
        conversation: ConversationId,
    },
}

/// Why a record cannot be read by this release, though its header is sound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownSchema {
    /// No released schema that is built in here has this fingerprint.
    #[error(
        "no schema of this release has the fingerprint {fingerprint:016x}: a newer release may have written it"
    )]
    Fingerprint {
        /// The fingerprint in the header.
        fingerprint: u64,
    },
    /// The value is in Confluent's framing.
    #[error("the value names schema {id} of a schema registry, which this release cannot ask")]
    Registry {
        /// The registry's id of the schema.
        id: u32,
    },
}

/// Writes an event as the value of a record. The record's key is the conversation id's text.
///
/// # Errors
/// [`EncodeError`]; never for an event that passes [`check_limits`](crate::check_limits).
pub fn encode(event: &Event) -> Result<Vec<u8>, EncodeError> {
    // apache-avro would refuse it too, with its whole schema in the error's text.
    check_seq(&event.payload).map_err(EncodeError::Seq)?;
    let mut value = Vec::with_capacity(ROOM);
    value.extend_from_slice(&SINGLE_OBJECT);
    value.extend_from_slice(&EVENT_SCHEMAS[CURRENT].fingerprint.to_le_bytes());
    CODEC
        .writer
        .write_ser(&mut value, &Written::from(event))
        .map_err(|source| EncodeError::Schema { source })?;
    match value.len() {
        bytes if bytes > MAX_VALUE_BYTES => Err(EncodeError::TooLong { bytes }),
        _ => Ok(value),
    }
}

/// Reads the event of a record from its key and value.
///
/// Cost: in proportion to the value's length; see [`MAX_VALUE_BYTES`].
///
/// # Errors
/// [`DecodeError`] says whether it can ever become an event.
pub fn decode(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Event, DecodeError> {
    let value = value.ok_or(Undecodable::NoValue)?;
    let (fingerprint, mut datum) = open(value)?;
    let (version, reader) = CODEC
        .reader(fingerprint)
        .ok_or(UnknownSchema::Fingerprint { fingerprint })?;
    if value.len() > MAX_VALUE_BYTES {
        return Err(Undecodable::TooLong { bytes: value.len() }.into());
    }
    let event = match reader.read_deser::<Read>(&mut datum) {
        Ok(read) => Event::from(read),
        Err(source) => return Err(Undecodable::Body { version, source }.into()),
    };
    if !datum.is_empty() {
        return Err(Undecodable::TrailingBytes { count: datum.len() }.into());
    }
    let conversation = event.conversation.clone();
    match key {
        Some(key) if key == conversation.as_str().as_bytes() => Ok(event),
        Some(_) => Err(Undecodable::OtherKey { conversation }.into()),
        None => Err(Undecodable::NoKey { conversation }.into()),
    }
}

/// Takes the header off a value: the fingerprint of its schema, and its datum.
fn open(value: &[u8]) -> Result<(u64, &[u8]), DecodeError> {
    if let [CONFLUENT, a, b, c, d, ..] = *value {
        let id = u32::from_be_bytes([a, b, c, d]);
        return Err(UnknownSchema::Registry { id }.into());
    }
    match value
        .strip_prefix(&SINGLE_OBJECT)
        .and_then(<[u8]>::split_first_chunk)
    {
        Some((fingerprint, datum)) => Ok((u64::from_le_bytes(*fingerprint), datum)),
        None => Err(Undecodable::NoHeader.into()),
    }
}

/// Room for most events, so that encoding one allocates once.
const ROOM: usize = 256;

/// What is made of the schemas once, at the first event.
struct Codec {
    writer: GenericDatumWriter<'static>,
    /// In the order of [`EVENT_SCHEMAS`].
    readers: Vec<GenericDatumReader<'static>>,
}

static SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    EVENT_SCHEMAS
        .iter()
        .map(|EventSchema { version, text, .. }| built_in(*version, Schema::parse_str(text)))
        .collect()
});

static CODEC: LazyLock<Codec> = LazyLock::new(|| {
    // Holds for the whole process, from the first use of apache-avro on: a length that garbage claims is
    // refused before anything of that size is allocated. No sound value has a longer part.
    max_allocation_bytes(MAX_VALUE_BYTES);
    let schemas: &'static [Schema] = &SCHEMAS;
    let readers = EVENT_SCHEMAS.iter().zip(schemas);
    Codec {
        writer: built_in(
            EVENT_SCHEMAS[CURRENT].version,
            GenericDatumWriter::builder(&schemas[CURRENT])
                .human_readable(false)
                .build(),
        ),
        readers: readers
            .map(|(EventSchema { version, .. }, schema)| {
                built_in(
                    *version,
                    GenericDatumReader::builder(schema)
                        .human_readable(false)
                        .build(),
                )
            })
            .collect(),
    }
});

impl Codec {
    fn reader(&self, fingerprint: u64) -> Option<(u32, &GenericDatumReader<'static>)> {
        let known = EVENT_SCHEMAS.iter().zip(&self.readers);
        known
            .filter(|(schema, _)| schema.fingerprint == fingerprint)
            .map(|(schema, reader)| (schema.version, reader))
            .next()
    }
}

/// What a schema that is part of this crate was made into. That it can be is for the tests to show.
fn built_in<T>(version: u32, made: Result<T, apache_avro::Error>) -> T {
    made.unwrap_or_else(|error| {
        panic!("version {version} of the event's schema cannot be used: {error}")
    })
}

/// The envelope as it is written. Fields have the schema's names and order: apache-avro buffers what comes early.
#[derive(Serialize)]
struct Written<'a> {
    event_id: EventId,
    conversation_id: &'a ConversationId,
    actor: &'a UserId,
    by_service: bool,
    occurred_at: Option<i64>,
    body_key: Option<&'a str>,
    payload: &'a Payload,
}

impl<'a> From<&'a Event> for Written<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            event_id: event.id,
            conversation_id: &event.conversation,
            actor: &event.actor,
            by_service: event.by_service,
            occurred_at: event.occurred_at,
            body_key: event.body_key.as_deref(),
            payload: &event.payload,
        }
    }
}

/// The envelope as it is read. apache-avro compares the name with the record's.
#[derive(Deserialize)]
#[serde(rename = "Event")]
struct Read {
    event_id: EventId,
    conversation_id: ConversationId,
    actor: UserId,
    by_service: bool,
    occurred_at: Option<i64>,
    body_key: Option<String>,
    payload: Payload,
}

impl From<Read> for Event {
    fn from(read: Read) -> Self {
        Self {
            id: read.event_id,
            conversation: read.conversation_id,
            actor: read.actor,
            by_service: read.by_service,
            occurred_at: read.occurred_at,
            body_key: read.body_key,
            payload: read.payload,
        }
    }
}

#[cfg(test)]
mod tests;
