//! `sessions_<generation>_blocks`: which messages count, in blocks that share a table partition by 64.

use std::collections::BTreeMap;

use scylla::{DeserializeRow, SerializeRow};
use tidemark_event::ConversationId;
use tidemark_fold::sessions::{Block, BlockNo};

use crate::{
    column::{self, BadColumn, Blob},
    error::StoreError,
    link::{Job, Link, Readable, Statement},
    schema::Names,
    timestamp::WriteTimestamp,
    write::{Writable, Written, write_jobs},
};

const INSERT: &str = "INSERT INTO {table} (conversation_id, block_group, block, applied, state) \
    VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?";
const SELECT: &str = "SELECT conversation_id, block, applied, state FROM {table} \
    WHERE conversation_id = ? AND block_group = ? AND block IN ?";

/// Blocks in one table partition.
const GROUP_BLOCKS: u64 = 64;

/// The group that a block is in.
pub(super) fn group(block: BlockNo) -> u64 {
    block.get() / GROUP_BLOCKS
}

/// The statements of one generation's blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    insert: Statement,
    select: Statement,
}

impl Blocks {
    pub(super) async fn prepare(link: &Link, names: &Names) -> Result<Self, StoreError> {
        let table = names.table("blocks");
        Ok(Self {
            insert: link.prepare(&table, INSERT).await?,
            select: link.prepare(&table, SELECT).await?,
        })
    }

    pub(super) fn writes<'a>(
        &'a self,
        link: &'a Link,
        blocks: impl IntoIterator<Item = (&'a ConversationId, &'a Block)>,
    ) -> Result<Vec<Job<'a, Written>>, StoreError> {
        let mut rows = Vec::new();
        for (conversation, block) in blocks {
            let row = BlockInsert::of(conversation, block).map_err(|bad| {
                let key = format!("{conversation}, block {}", block.no.get());
                StoreError::unwritable(self.insert.table(), key, bad)
            })?;
            rows.push(row);
        }
        Ok(write_jobs(link, &self.insert, rows))
    }

    /// Those of `wanted`, all of one group, that are there.
    pub(super) async fn read_some(
        &self,
        link: &Link,
        conversation: &ConversationId,
        group: u64,
        wanted: &[BlockNo],
    ) -> Result<BTreeMap<BlockNo, Block>, StoreError> {
        // A number beyond a bigint is none that a row has.
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let numbers: Vec<i64> = wanted.iter().map(|block| number(block.get())).collect();
        let values = (conversation.as_str(), number(group), numbers);
        let key = format!("{conversation}, block group {group}");
        let blocks: Vec<Block> = link.all(&self.select, &values, key).await?;
        Ok(blocks.into_iter().map(|block| (block.no, block)).collect())
    }
}

#[derive(Debug, SerializeRow, DeserializeRow)]
pub(crate) struct BlockRow<'r> {
    conversation_id: &'r str,
    block: i64,
    applied: i64,
    state: Blob<'r>,
}

#[derive(Debug, SerializeRow)]
struct BlockInsert<'r> {
    block_group: i64,
    #[scylla(rename = "[timestamp]")]
    timestamp: WriteTimestamp,
    #[scylla(flatten)]
    row: BlockRow<'r>,
}

impl<'r> BlockInsert<'r> {
    fn of(conversation: &'r ConversationId, block: &Block) -> Result<Self, BadColumn> {
        Ok(Self {
            block_group: column::bigint("block_group", group(block.no))?,
            timestamp: WriteTimestamp::applied(block.applied),
            row: BlockRow {
                conversation_id: conversation.as_str(),
                block: column::bigint("block", block.no.get())?,
                applied: column::from_offset("applied", block.applied)?,
                state: Blob::encode("state", block)?,
            },
        })
    }
}

impl Readable for Block {
    type Row<'r> = BlockRow<'r>;

    fn key(row: &BlockRow<'_>) -> String {
        format!("{}, block {}", row.conversation_id, row.block)
    }

    fn read(row: BlockRow<'_>) -> Result<Self, BadColumn> {
        let block: Self = row.state.decode("state")?;
        if block.no.get() != column::number::<u64>("block", row.block)? {
            return Err(BadColumn::new("block", "is not that of the state"));
        }
        if block.applied != column::offset("applied", row.applied)? {
            return Err(BadColumn::new("applied", "is not that of the state"));
        }
        Ok(block)
    }
}

impl<'r> Writable for BlockInsert<'r> {
    type Partition = (&'r str, i64);

    fn partition(&self) -> Self::Partition {
        (self.row.conversation_id, self.block_group)
    }

    fn bytes(&self) -> usize {
        const FIXED: usize = 80;
        FIXED + self.row.conversation_id.len() + self.row.state.len()
    }

    fn key(&self) -> String {
        Block::key(&self.row)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    proptest! {
        #[test]
        fn a_block_reads_back_as_it_was_written(
            conversation in sample::conversation(),
            block in sample::block(),
        ) {
            let row = BlockInsert::of(&conversation, &block).unwrap().row;
            prop_assert_eq!(Readable::read(row), Ok(block));
        }
    }
}
