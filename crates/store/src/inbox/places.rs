//! `inbox_<generation>_places`: what a user may see of a conversation, and how far each device has stored it.

use std::collections::BTreeMap;

use futures::stream::BoxStream;
use scylla::{DeserializeRow, SerializeRow};
use tidemark_event::{ConversationId, DeviceId, Partition, Seq, UserId};
use tidemark_fold::inbox::Place;

use crate::{
    TokenRange,
    column::{self, BadColumn, Blob},
    error::StoreError,
    link::{Job, Link, Readable, Statement},
    schema::Names,
    timestamp::WriteTimestamp,
    write::{Writable, Written, write_jobs},
};

const INSERT: &str = "INSERT INTO {table} (user_id, log_partition, conversation_id, applied, copied_to, state, \
    devices) VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
const SELECT_SOME: &str = "SELECT user_id, log_partition, conversation_id, applied, copied_to, state, devices \
    FROM {table} WHERE user_id = ? AND log_partition = ? AND conversation_id IN ?";
const SELECT_ALL: &str = "SELECT user_id, log_partition, conversation_id, applied, copied_to, state, devices \
    FROM {table} WHERE user_id = ?";
const SCAN: &str = "SELECT user_id, log_partition, conversation_id, applied, copied_to, state, devices \
    FROM {table} WHERE token(user_id) > ? AND token(user_id) <= ?";

/// The statements of one generation's places.
#[derive(Debug)]
pub(super) struct Places {
    insert: Statement,
    select_some: Statement,
    select_all: Statement,
    scan: Statement,
}

/// A place, whose it is and in which conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceOf {
    /// The user.
    pub user: UserId,
    /// The partition of the log that the conversation is in.
    pub partition: Partition,
    /// The conversation.
    pub conversation: ConversationId,
    /// The place.
    pub place: Place,
}

impl Places {
    pub(super) async fn prepare(link: &Link, names: &Names) -> Result<Self, StoreError> {
        let table = names.table("places");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select_some: link.prepare(&table, SELECT_SOME).await?,
            select_all: link.prepare(&table, SELECT_ALL).await?,
            scan: link.prepare(&table, SCAN).await?,
        })
    }

    pub(super) fn writes<'a>(
        &'a self,
        link: &'a Link,
        partition: Partition,
        places: impl IntoIterator<Item = (&'a UserId, &'a ConversationId, &'a Place)>,
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let mut rows = Vec::new();
        for (user, conversation, place) in places {
            let row = PlaceRow::of(user, partition, conversation, place).map_err(|bad| {
                let key = format!("{user}, {conversation}");
                StoreError::unwritable(self.insert.table(), key, bad)
            })?;
            rows.push(PlaceInsert {
                timestamp: WriteTimestamp::applied(place.applied),
                row,
            });
        }
        Ok(write_jobs(link, &self.insert, rows))
    }

    /// Those of a user's places in `conversations`, all of one partition of the log, that are there.
    pub(super) async fn read_some(
        &self,
        link: &Link,
        user: &UserId,
        partition: Partition,
        conversations: &[ConversationId],
    ) -> Result<BTreeMap<ConversationId, Place>, StoreError> {
        let names: Vec<&str> = conversations.iter().map(ConversationId::as_str).collect();
        let values = (user.as_str(), partition.get(), names);
        let rows: Vec<PlaceOf> = link.all(&self.select_some, &values, user.as_str()).await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.conversation, row.place))
            .collect())
    }

    pub(super) async fn read_all(
        &self,
        link: &Link,
        user: &UserId,
    ) -> Result<Vec<PlaceOf>, StoreError> {
        link.all(&self.select_all, &(user.as_str(),), user.as_str())
            .await
    }

    pub(super) fn scan<'a>(
        &'a self,
        link: &'a Link,
        range: TokenRange,
    ) -> BoxStream<'a, Result<PlaceOf, StoreError>> {
        link.scan(&self.scan, range.bounds(), range.to_string())
    }
}

#[derive(Debug, SerializeRow, DeserializeRow)]
pub(crate) struct PlaceRow<'r> {
    user_id: &'r str,
    log_partition: i32,
    conversation_id: &'r str,
    applied: i64,
    copied_to: i64,
    state: Blob<'r>,
    devices: BTreeMap<&'r str, i64>,
}

#[derive(Debug, SerializeRow)]
struct PlaceInsert<'r> {
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
    #[scylla(flatten)]
    row: PlaceRow<'r>,
}

impl<'r> PlaceRow<'r> {
    fn of(
        user: &'r UserId,
        partition: Partition,
        conversation: &'r ConversationId,
        place: &'r Place,
    ) -> Result<Self, BadColumn> {
        let mut devices = BTreeMap::new();
        for (device, seq) in &place.devices {
            devices.insert(device.as_str(), column::from_seq("devices", *seq)?);
        }
        Ok(Self {
            user_id: user.as_str(),
            log_partition: partition.get(),
            conversation_id: conversation.as_str(),
            applied: column::from_offset("applied", place.applied)?,
            copied_to: column::from_seq_or_none("copied_to", place.copied_to)?,
            state: Blob::encode("state", &place.member)?,
            devices,
        })
    }
}

impl Readable for PlaceOf {
    type Row<'r> = PlaceRow<'r>;

    fn key(row: &PlaceRow<'_>) -> String {
        format!("{}, {}", row.user_id, row.conversation_id)
    }

    fn read(row: PlaceRow<'_>) -> Result<Self, BadColumn> {
        let mut devices: BTreeMap<DeviceId, Seq> = BTreeMap::new();
        for (device, seq) in &row.devices {
            let device = column::device("devices", device)?;
            devices.insert(device, column::seq("devices", *seq)?);
        }
        let place = Place {
            applied: column::offset("applied", row.applied)?,
            member: row.state.decode("state")?,
            devices,
            copied_to: column::seq_or_none("copied_to", row.copied_to)?,
        };
        Ok(Self {
            user: column::user("user_id", row.user_id)?,
            partition: Partition::new(row.log_partition),
            conversation: column::conversation("conversation_id", row.conversation_id)?,
            place,
        })
    }
}

impl<'r> Writable for PlaceInsert<'r> {
    type Partition = &'r str;

    fn partition(&self) -> &'r str {
        self.row.user_id
    }

    fn bytes(&self) -> usize {
        const FIXED: usize = 100;
        const DEVICE: usize = 16;
        let row = &self.row;
        let devices: usize = row.devices.keys().map(|device| DEVICE + device.len()).sum();
        FIXED + row.user_id.len() + row.conversation_id.len() + row.state.len() + devices
    }

    fn key(&self) -> String {
        PlaceOf::key(&self.row)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    proptest! {
        #[test]
        fn a_place_reads_back_as_it_was_written(
            user in sample::user(),
            conversation in sample::conversation(),
            place in sample::place(),
        ) {
            let partition = Partition::new(3);
            let row = PlaceRow::of(&user, partition, &conversation, &place).unwrap();
            let read = Readable::read(row);
            prop_assert_eq!(read, Ok(PlaceOf { user, partition, conversation, place }));
        }
    }
}
