//! A seq inside an event as the signed number that Avro's long is.
//!
//! A negative number is no seq, and a seq beyond the largest long cannot be written: both are errors
//! rather than a wrapped number. Used by `#[serde(with)]` on the fields of payloads.

use serde::{Deserialize, Deserializer, Serializer, de, ser};

use crate::Seq;

fn to_long<E: ser::Error>(seq: Seq) -> Result<i64, E> {
    i64::try_from(seq.get()).map_err(|_| {
        E::custom(format_args!(
            "seq {seq} is beyond the largest, {}",
            i64::MAX
        ))
    })
}

fn to_seq<E: de::Error>(long: i64) -> Result<Seq, E> {
    u64::try_from(long)
        .map(Seq::new)
        .map_err(|_| E::custom(format_args!("seq {long} is negative")))
}

pub(crate) fn serialize<S: Serializer>(seq: &Seq, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(to_long(*seq)?)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Seq, D::Error> {
    to_seq(i64::deserialize(deserializer)?)
}

/// The same for a seq that may be absent.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Seq, Serializer, to_long, to_seq};

    pub(crate) fn serialize<S: Serializer>(
        seq: &Option<Seq>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match seq {
            Some(seq) => serializer.serialize_some(&to_long::<S::Error>(*seq)?),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Seq>, D::Error> {
        Option::<i64>::deserialize(deserializer)?
            .map(to_seq)
            .transpose()
    }
}
