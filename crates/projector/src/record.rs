//! A record as Kafka gave it, and what decoding it comes to.

use tidemark_event::{DecodeError, Fingerprint, LogTime, Offset, decode};
use tidemark_fold::Record;

/// One record of a partition of the log, not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRecord {
    /// Its offset.
    pub offset: Offset,
    /// When the broker appended it, in milliseconds since 1970 UTC.
    pub append_time: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value.
    pub value: Option<Vec<u8>>,
}

impl RawRecord {
    /// Bytes of key and value.
    pub fn bytes(&self) -> usize {
        self.key.as_ref().map_or(0, Vec::len) + self.value.as_ref().map_or(0, Vec::len)
    }

    /// Tells this record from another one at the same offset.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.key.as_deref(), self.value.as_deref(), self.append_time)
    }

    /// Decodes the record, `log_time` being the log time as of it.
    ///
    /// # Errors
    /// [`DecodeError`]: undecodable, or of a schema that this release does not know.
    pub fn decode(&self, log_time: LogTime) -> Result<Record, DecodeError> {
        let event = decode(self.key.as_deref(), self.value.as_deref())?;
        Ok(Record {
            offset: self.offset,
            log_time,
            fingerprint: self.fingerprint(),
            event,
        })
    }
}
