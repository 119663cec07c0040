use std::error::Error;

use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;
use crate::{HistoryCleared, MAX_SEQ, MembersAdded, MessageSent, ReadAdvanced, Seq, sample};

const KEY: Option<&[u8]> = Some(b"g1");

fn value(payload: Payload) -> Vec<u8> {
    encode(&sample::event(payload)).unwrap()
}

fn read(seq: u64) -> Payload {
    Payload::ReadAdvanced(ReadAdvanced { seq: Seq::new(seq) })
}

fn message(body: String) -> Payload {
    let (content_type, mentions) = ("text".to_owned(), vec![]);
    let (mention_all, silent, reply_to) = (false, false, Some(Seq::FIRST));
    Payload::MessageSent(MessageSent {
        body,
        content_type,
        mentions,
        mention_all,
        silent,
        reply_to,
    })
}

fn header() -> Vec<u8> {
    let mut header = SINGLE_OBJECT.to_vec();
    header.extend_from_slice(&EVENT_SCHEMAS[CURRENT].fingerprint.to_le_bytes());
    header
}

#[track_caller]
fn undecodable(key: Option<&[u8]>, value: Option<&[u8]>) -> Undecodable {
    match decode(key, value) {
        Err(DecodeError::Undecodable(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// What the innermost cause of an undecodable body says.
#[track_caller]
fn garbled(value: &[u8]) -> String {
    let why = undecodable(KEY, Some(value));
    assert!(
        matches!(why, Undecodable::Body { version: 1, .. }),
        "{why:?}"
    );
    why.source().unwrap().to_string()
}

#[test]
fn a_value_begins_with_the_marker_and_the_fingerprint() {
    let value = value(read(5));
    assert_eq!(
        value[..10],
        [0xc3, 0x01, 0x05, 0xc3, 0xc9, 0x3b, 0xc8, 0x8e, 0x78, 0x33]
    );
}

#[test]
fn what_was_not_written_as_an_event_is_undecodable() {
    assert!(matches!(undecodable(KEY, None), Undecodable::NoValue));
    for value in [
        &b""[..],
        b"\xc3",
        b"\xc3\x01",
        b"\xc3\x01\x05\xc3\xc9\x3b\xc8\x8e\x78",
        b"{}",
        b"\0\0\0\x07",
    ] {
        assert!(
            matches!(undecodable(KEY, Some(value)), Undecodable::NoHeader),
            "{value:x?}"
        );
    }
}

#[test]
fn a_sound_header_of_another_schema_is_unknown_and_not_undecodable() {
    let unknown = |value: &[u8]| match decode(None, Some(value)) {
        Err(DecodeError::UnknownSchema(unknown)) => unknown,
        other => panic!("{other:?}"),
    };
    let fingerprint = 0x0807_0605_0403_0201;
    assert_eq!(
        unknown(b"\xc3\x01\x01\x02\x03\x04\x05\x06\x07\x08"),
        UnknownSchema::Fingerprint { fingerprint }
    );
    assert_eq!(
        unknown(b"\0\0\0\x01\x02"),
        UnknownSchema::Registry { id: 0x102 }
    );
    let mut huge = vec![0; MAX_VALUE_BYTES + 1];
    huge[..2].copy_from_slice(&SINGLE_OBJECT);
    assert_eq!(
        unknown(&huge),
        UnknownSchema::Fingerprint { fingerprint: 0 }
    );
}

#[test]
fn no_part_of_an_event_is_one() {
    let whole = value(message("hello".to_owned()));
    for length in header().len()..whole.len() {
        garbled(&whole[..length]);
    }
}

#[test]
fn bytes_after_the_event_are_counted() {
    let mut value = value(read(5));
    value.extend_from_slice(b"abc");
    let why = undecodable(KEY, Some(&value));
    assert!(
        matches!(why, Undecodable::TrailingBytes { count: 3 }),
        "{why:?}"
    );
}

#[test]
fn an_event_under_no_key_or_a_foreign_one_is_undecodable() {
    let value = value(read(5));
    assert!(matches!(
        undecodable(None, Some(&value)),
        Undecodable::NoKey { .. }
    ));
    for key in [&b""[..], b"g", b"g12", b"G1"] {
        assert!(
            matches!(
                undecodable(Some(key), Some(&value)),
                Undecodable::OtherKey { .. }
            ),
            "{key:?}"
        );
    }
}

#[test]
fn a_negative_seq_is_undecodable() {
    for payload in [read(1), message("hello".to_owned())] {
        let mut value = value(payload);
        // The seq is the last field of both: 1 and -1 are 02 and 01.
        assert_eq!(value.pop(), Some(0x02));
        value.push(0x01);
        let why = garbled(&value);
        assert!(why.ends_with("seq -1 is negative"), "{why}");
    }
}

#[test]
fn an_id_that_cannot_be_one_is_undecodable() {
    let mut value = value(read(5));
    let id = value.windows(2).position(|window| window == b"g1").unwrap();
    value[id] = 0x07;
    let why = garbled(&value);
    assert!(
        why.ends_with("a conversation id holds a control character"),
        "{why}"
    );
}

#[test]
fn a_branch_or_a_boolean_that_cannot_be_is_undecodable() {
    let mut value = value(Payload::HistoryCleared(HistoryCleared {}));
    // by_service, two nulls, and the payload's branch: 11 of 14, doubled.
    assert_eq!(value.split_off(value.len() - 4), [0, 0, 0, 22]);
    for tail in [[0, 0, 0, 28], [0, 0, 0, 1], [0, 4, 0, 22], [2, 0, 0, 22]] {
        garbled(&[&value[..], &tail[..]].concat());
    }
}

#[test]
fn a_claimed_length_allocates_no_more_than_a_value_may_have() {
    let mut value = header();
    value.extend_from_slice(&[0; 16]);
    value.extend_from_slice(&[0xfe, 0xff, 0xff, 0xff, 0xff, 0x01]);
    let why = garbled(&value);
    assert!(why.contains("Unable to allocate"), "{why}");
    // The first caller in the process has set it: this crate.
    assert_eq!(max_allocation_bytes(1), MAX_VALUE_BYTES);
}

#[test]
fn a_list_in_blocks_is_read_as_one() {
    let members = |names: &[&str]| {
        let members = names
            .iter()
            .map(|name| UserId::new(name).unwrap())
            .collect();
        Payload::MembersAdded(MembersAdded { members })
    };
    let whole = value(members(&["a", "b", "c"]));
    let list = [0x06, 0x02, b'a', 0x02, b'b', 0x02, b'c', 0x00];
    let blocks = [
        &whole[..whole.len() - list.len()],
        // One entry; then two, counted below zero with their size in bytes, as the specification allows.
        &[0x02, 0x02, b'a', 0x03, 0x08, 0x02, b'b', 0x02, b'c', 0x00],
    ];
    assert!(whole.ends_with(&list));
    assert_eq!(
        decode(KEY, Some(&blocks.concat())).unwrap().payload,
        members(&["a", "b", "c"])
    );
}

#[test]
fn what_nobody_could_read_is_not_written() {
    let error = encode(&sample::event(message("x".repeat(MAX_VALUE_BYTES)))).unwrap_err();
    assert!(matches!(error, EncodeError::TooLong { .. }), "{error:?}");
    let mut value = header();
    value.resize(MAX_VALUE_BYTES + 1, 0);
    assert!(matches!(
        undecodable(KEY, Some(&value)),
        Undecodable::TooLong { .. }
    ));

    let error = encode(&sample::event(read(MAX_SEQ.get() + 1))).unwrap_err();
    assert!(matches!(error, EncodeError::Seq(_)), "{error:?}");
}

#[test]
fn the_largest_value_is_written_and_read() {
    let empty = value(message(String::new())).len();
    // Three more bytes for the length of the body.
    let event = sample::event(message("x".repeat(MAX_VALUE_BYTES - empty - 3)));
    let value = encode(&event).unwrap();
    assert_eq!(value.len(), MAX_VALUE_BYTES);
    assert_eq!(decode(KEY, Some(&value)).unwrap(), event);
}

#[derive(Debug, Clone)]
enum Change {
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Delete(Index),
    Cut(Index),
}

impl Change {
    fn make(&self, value: &mut Vec<u8>) {
        let length = value.len().max(1);
        match self {
            Self::Flip(at, bits) => value
                .iter_mut()
                .skip(at.index(length))
                .take(1)
                .for_each(|byte| *byte ^= bits),
            Self::Insert(at, bytes) => {
                let at = at.index(length).min(value.len());
                value.splice(at..at, bytes.iter().copied());
            }
            Self::Delete(at) if !value.is_empty() => {
                value.remove(at.index(length));
            }
            Self::Delete(_) => {}
            Self::Cut(at) => value.truncate(at.index(length)),
        }
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<Index>(), 1..=u8::MAX).prop_map(|(at, bits)| Change::Flip(at, bits)),
        2 => (any::<Index>(), vec(any::<u8>(), 1..12)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        2 => any::<Index>().prop_map(Change::Delete),
        1 => any::<Index>().prop_map(Change::Cut),
    ]
}

/// Reads bytes of any kind under the key that they name. What can be read can be written and read again.
fn survive(value: &[u8]) -> Result<(), TestCaseError> {
    let conversation = match decode(None, Some(value)) {
        Err(DecodeError::Undecodable(Undecodable::NoKey { conversation })) => conversation,
        Err(_) => return Ok(()),
        Ok(event) => {
            return Err(TestCaseError::fail(format!(
                "read without a key: {event:?}"
            )));
        }
    };
    let key = Some(conversation.as_str().as_bytes());
    let event = decode(key, Some(value)).unwrap();
    prop_assert_eq!(decode(key, Some(&encode(&event).unwrap())).unwrap(), event);
    Ok(())
}

proptest! {
    #[test]
    fn an_event_reads_back_as_it_was_written(event in sample::any_event()) {
        let value = encode(&event).unwrap();
        prop_assert_eq!(decode(Some(event.conversation.as_str().as_bytes()), Some(&value)).unwrap(), event);
    }

    #[test]
    fn any_bytes_are_an_event_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        survive(&bytes)?;
        survive(&[header(), bytes].concat())?;
    }

    #[test]
    fn an_event_with_changed_bytes_is_an_event_or_an_error(
        event in sample::any_event(),
        changes in vec(any_change(), 1..5),
    ) {
        let mut value = encode(&event).unwrap();
        for change in changes {
            change.make(&mut value);
        }
        survive(&value)?;
    }
}
