//! What a fold is given: one decoded record of the log.

use tidemark_event::{Event, Fingerprint, LogTime, Offset};

/// One decoded record, with everything of it that a fold may know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its offset: the only order.
    pub offset: Offset,
    /// Log time as of this record: the only time.
    pub log_time: LogTime,
    /// Tells this record from another one at the same offset of a topic made anew.
    pub fingerprint: Fingerprint,
    /// The event it carries.
    pub event: Event,
}
