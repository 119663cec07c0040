//! How values stand in columns: numbers, names, times, blobs, and what may be absent.
//!
//! A row is read as CQL has it and then checked value by value. What no fold has written is an error that names the
//! column; nothing is ever defaulted.

use std::borrow::Cow;

use scylla::{
    deserialize::{DeserializationError, FrameSlice, TypeCheckError, value::DeserializeValue},
    frame::response::result::ColumnType,
    serialize::{
        SerializationError,
        value::SerializeValue,
        writers::{CellWriter, WrittenCellProof},
    },
    value::CqlTimestamp,
};
use serde::{Serialize, de::DeserializeOwned};
use tidemark_event::{
    ConversationId, DeviceId, History, IdError, Kind, LogTime, Offset, Seq, UserId,
};

/// A column that holds, or would hold, what it must not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadColumn {
    pub(crate) column: &'static str,
    pub(crate) problem: String,
}

impl BadColumn {
    pub(crate) fn new(column: &'static str, problem: impl Into<String>) -> Self {
        Self {
            column,
            problem: problem.into(),
        }
    }
}

/// A value that is absent for good: unset when written, so that no tombstone stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lasting<T>(pub(crate) Option<T>);

impl<T: SerializeValue> SerializeValue for Lasting<T> {
    fn serialize<'b>(
        &self,
        column: &ColumnType<'_>,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        match &self.0 {
            Some(value) => value.serialize(column, writer),
            #[cfg(feature = "planted-faults")]
            None if tidemark_fold::planted::is_planted(
                tidemark_fold::planted::Fault::NullInsteadOfUnset,
            ) =>
            {
                Ok(writer.set_null())
            }
            None => Ok(writer.set_unset()),
        }
    }
}

impl<'frame, 'metadata, T: DeserializeValue<'frame, 'metadata>> DeserializeValue<'frame, 'metadata>
    for Lasting<T>
{
    fn type_check(column: &ColumnType<'_>) -> Result<(), TypeCheckError> {
        T::type_check(column)
    }

    fn deserialize(
        column: &'metadata ColumnType<'metadata>,
        value: Option<FrameSlice<'frame>>,
    ) -> Result<Self, DeserializationError> {
        Option::deserialize(column, value).map(Self)
    }
}

/// Postcard bytes of what only folds look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob<'r>(Cow<'r, [u8]>);

impl Blob<'_> {
    pub(crate) fn encode(column: &'static str, value: &impl Serialize) -> Result<Self, BadColumn> {
        match postcard::to_stdvec(value) {
            Ok(bytes) => Ok(Self(bytes.into())),
            Err(error) => Err(BadColumn::new(
                column,
                format!("cannot be encoded: {error}"),
            )),
        }
    }

    pub(crate) fn decode<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, BadColumn> {
        match postcard::take_from_bytes(&self.0) {
            Ok((value, [])) => Ok(value),
            Ok((_, rest)) => Err(BadColumn::new(
                column,
                format!("has {} bytes too many", rest.len()),
            )),
            Err(error) => Err(BadColumn::new(
                column,
                format!("cannot be decoded: {error}"),
            )),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl SerializeValue for Blob<'_> {
    fn serialize<'b>(
        &self,
        column: &ColumnType<'_>,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        SerializeValue::serialize(&&*self.0, column, writer)
    }
}

impl<'frame: 'r, 'metadata, 'r> DeserializeValue<'frame, 'metadata> for Blob<'r> {
    fn type_check(column: &ColumnType<'_>) -> Result<(), TypeCheckError> {
        <&[u8]>::type_check(column)
    }

    fn deserialize(
        column: &'metadata ColumnType<'metadata>,
        value: Option<FrameSlice<'frame>>,
    ) -> Result<Self, DeserializationError> {
        <&[u8]>::deserialize(column, value).map(|bytes| Self(bytes.into()))
    }
}

/// A number that counts from 0, for a bigint column.
pub(crate) fn bigint(column: &'static str, number: u64) -> Result<i64, BadColumn> {
    i64::try_from(number)
        .map_err(|_| BadColumn::new(column, format!("would be {number}, beyond a bigint")))
}

/// A number that counts from 0.
pub(crate) fn number<T: TryFrom<i64>>(column: &'static str, stored: i64) -> Result<T, BadColumn> {
    match T::try_from(stored) {
        Ok(number) if stored >= 0 => Ok(number),
        Ok(_) | Err(_) => Err(BadColumn::new(column, format!("is {stored}, out of range"))),
    }
}

/// A seq, 0 included, for a bigint column.
pub(crate) fn from_seq(column: &'static str, seq: Seq) -> Result<i64, BadColumn> {
    bigint(column, seq.get())
}

/// A seq, 0 included.
pub(crate) fn seq(column: &'static str, stored: i64) -> Result<Seq, BadColumn> {
    number(column, stored).map(Seq::new)
}

/// A seq that a message has: from 1.
pub(crate) fn message_seq(column: &'static str, stored: i64) -> Result<Seq, BadColumn> {
    match seq(column, stored)? {
        Seq::ZERO => Err(BadColumn::new(column, "is 0, which no message has")),
        seq => Ok(seq),
    }
}

/// A seq of a message that may not be there: 0 stands for none.
pub(crate) fn from_seq_or_zero(column: &'static str, seq: Option<Seq>) -> Result<i64, BadColumn> {
    match seq {
        None => Ok(0),
        Some(Seq::ZERO) => Err(BadColumn::new(column, "would be 0, which no message has")),
        Some(seq) => from_seq(column, seq),
    }
}

/// See [`from_seq_or_zero`].
pub(crate) fn seq_or_zero(column: &'static str, stored: i64) -> Result<Option<Seq>, BadColumn> {
    match stored {
        0 => Ok(None),
        _ => message_seq(column, stored).map(Some),
    }
}

/// A seq, 0 included, that may not be there: −1 stands for none.
pub(crate) fn from_seq_or_none(column: &'static str, seq: Option<Seq>) -> Result<i64, BadColumn> {
    seq.map_or(Ok(-1), |seq| from_seq(column, seq))
}

/// See [`from_seq_or_none`].
pub(crate) fn seq_or_none(column: &'static str, stored: i64) -> Result<Option<Seq>, BadColumn> {
    match stored {
        -1 => Ok(None),
        _ => seq(column, stored).map(Some),
    }
}

/// The offset of a record.
pub(crate) fn offset(column: &'static str, stored: i64) -> Result<Offset, BadColumn> {
    number::<u64>(column, stored)?;
    Ok(Offset::new(stored))
}

/// The same on the way in: an offset that no record has must not reach the store.
pub(crate) fn from_offset(column: &'static str, offset: Offset) -> Result<i64, BadColumn> {
    number::<u64>(column, offset.get())?;
    Ok(offset.get())
}

/// A log time.
pub(crate) fn from_time(log_time: LogTime) -> CqlTimestamp {
    CqlTimestamp(log_time.millis())
}

/// See [`from_time`].
pub(crate) fn time(column: &'static str, stored: CqlTimestamp) -> Result<LogTime, BadColumn> {
    number::<u64>(column, stored.0)?;
    Ok(LogTime::from_millis(stored.0))
}

fn id<T>(column: &'static str, id: Result<T, IdError>) -> Result<T, BadColumn> {
    id.map_err(|error| BadColumn::new(column, format!("is no id: {error}")))
}

/// A user's id.
pub(crate) fn user(column: &'static str, stored: &str) -> Result<UserId, BadColumn> {
    id(column, UserId::new(stored))
}

/// A conversation's id.
pub(crate) fn conversation(
    column: &'static str,
    stored: &str,
) -> Result<ConversationId, BadColumn> {
    id(column, ConversationId::new(stored))
}

/// A device's id.
pub(crate) fn device(column: &'static str, stored: &str) -> Result<DeviceId, BadColumn> {
    id(column, DeviceId::new(stored))
}

/// Direct or group, as text.
pub(crate) const fn from_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Direct => "direct",
        Kind::Group => "group",
    }
}

/// See [`from_kind`].
pub(crate) fn kind(column: &'static str, stored: &str) -> Result<Kind, BadColumn> {
    word(column, stored, [Kind::Direct, Kind::Group], from_kind)
}

/// A history setting, as text.
pub(crate) const fn from_history(history: History) -> &'static str {
    match history {
        History::FromJoin => "from_join",
        History::All => "all",
    }
}

/// See [`from_history`].
pub(crate) fn history(column: &'static str, stored: &str) -> Result<History, BadColumn> {
    word(
        column,
        stored,
        [History::FromJoin, History::All],
        from_history,
    )
}

/// The one of `values` whose text is stored.
pub(crate) fn word<T: Copy>(
    column: &'static str,
    stored: &str,
    values: impl IntoIterator<Item = T>,
    text: impl Fn(T) -> &'static str,
) -> Result<T, BadColumn> {
    values
        .into_iter()
        .find(|value| text(*value) == stored)
        .ok_or_else(|| BadColumn::new(column, format!("is {stored:?}, which is no word of it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_fold_has_written_is_an_error_that_names_its_column() {
        assert_eq!(
            seq("read_seq", -3),
            Err(BadColumn::new("read_seq", "is -3, out of range"))
        );
        assert_eq!(
            message_seq("seq", 0),
            Err(BadColumn::new("seq", "is 0, which no message has"))
        );
        assert_eq!(
            number::<u32>("members", 1 << 40),
            Err(BadColumn::new("members", "is 1099511627776, out of range"))
        );
        assert!(kind("kind", "channel").is_err());
        assert!(user("sender", "").is_err());
        assert!(offset("applied", -1).is_err());
    }

    #[test]
    fn none_and_zero_stay_apart_where_zero_is_a_value() {
        for seq in [None, Some(Seq::ZERO), Some(Seq::new(7))] {
            let stored = from_seq_or_none("removed_at", seq).unwrap();
            assert_eq!(seq_or_none("removed_at", stored), Ok(seq));
        }
        for seq in [None, Some(Seq::new(7))] {
            let stored = from_seq_or_zero("mentioned_all", seq).unwrap();
            assert_eq!(seq_or_zero("mentioned_all", stored), Ok(seq));
        }
        assert!(from_seq_or_zero("mentioned_all", Some(Seq::ZERO)).is_err());
        assert!(from_seq("seq", Seq::new(u64::MAX)).is_err());
    }

    #[test]
    fn a_blob_is_read_to_its_end_or_not_at_all() {
        let blob = Blob::encode("state", &(7_u64, "bo")).unwrap();
        assert_eq!(blob.decode("state"), Ok((7_u64, "bo".to_owned())));
        assert_eq!(
            blob.decode::<u64>("state"),
            Err(BadColumn::new("state", "has 3 bytes too many"))
        );
        assert!(blob.decode::<(u64, String, String)>("state").is_err());
    }
}
