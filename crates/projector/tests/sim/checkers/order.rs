//! Verifies rule 4 in what is stored: a head that is there has its rows, pieces and dead letters there; a checkpoint
//! that is there has all heads and dead letters below it there.
//!
//! Looks at each head and checkpoint when it is written, and from where the last look ended, for what is stored never
//! goes back. Knows from the reference run which records write what.

use std::collections::BTreeMap;

use tidemark_event::{ConversationId, NextOffset, Partition};
use tidemark_store::{
    WriteTimestamp,
    double::{Cluster, RowWrite},
};

use crate::{
    reference::{PartitionTrace, RecordTrace, Reference, is_checkpoints},
    workload::{Workload, index},
    world::State,
};

pub(super) struct Order {
    /// For each partition, how many of its records are known to be below a checkpoint that is right.
    folded: Vec<usize>,
    /// The newest stored checkpoint of each partition.
    checkpoints: Vec<NextOffset>,
    /// For each conversation its records, and how many of them are known to be in a head that is right.
    conversations: BTreeMap<(usize, ConversationId), (Vec<usize>, usize)>,
}

impl Order {
    pub(super) fn of(reference: &Reference) -> Self {
        let mut conversations: BTreeMap<_, (Vec<usize>, usize)> = BTreeMap::new();
        for (partition, trace) in reference.partitions.iter().enumerate() {
            for (place, traced) in trace.records.iter().enumerate() {
                if let Some(conversation) = &traced.conversation {
                    let known = conversations.entry((partition, conversation.clone()));
                    known.or_default().0.push(place);
                }
            }
        }
        Self {
            folded: vec![0; reference.partitions.len()],
            checkpoints: vec![NextOffset::START; reference.partitions.len()],
            conversations,
        }
    }

    pub(super) fn checkpoint(&self, partition: Partition) -> NextOffset {
        self.checkpoints[index(partition)]
    }

    /// Learns anew which checkpoints are stored.
    pub(super) fn look(&mut self, cluster: &Cluster, workload: &Workload) {
        for log in &workload.partitions {
            self.checkpoints[index(log.partition)] = stored_checkpoint(cluster, log.partition);
        }
    }

    pub(super) fn check(
        &mut self,
        row: &RowWrite,
        cluster: &Cluster,
        reference: &Reference,
        workload: &Workload,
        world: &State,
    ) {
        if is_checkpoints(row.key.table()) {
            for log in &workload.partitions {
                self.check_checkpoint(log.partition, cluster, reference, world);
            }
        } else if let Some((partition, conversation)) = reference.heads.get(&row.key) {
            let trace = &reference.partitions[*partition];
            let letters = &world.letters[*partition];
            let known = self
                .conversations
                .get_mut(&(*partition, conversation.clone()));
            let Some((places, seen)) = known else { return };
            while let Some(place) = places.get(*seen) {
                let traced = &trace.records[*place];
                if WriteTimestamp::applied(traced.offset).micros() > row.timestamp {
                    break;
                }
                let is_sent = !traced.is_dead_letter || letters.contains(&traced.offset);
                assert!(
                    is_sent,
                    "the head of {conversation} has passed offset {}, whose dead letter is not sent",
                    traced.offset
                );
                for (key, timestamp) in &traced.writes {
                    assert!(
                        cluster.newest(key) >= Some(*timestamp),
                        "the head of {conversation} is at {}, but {key} is not stored as of offset {}",
                        row.timestamp
                            - WriteTimestamp::applied(tidemark_event::Offset::new(0)).micros(),
                        traced.offset
                    );
                }
                *seen += 1;
            }
        }
    }

    fn check_checkpoint(
        &mut self,
        partition: Partition,
        cluster: &Cluster,
        reference: &Reference,
        world: &State,
    ) {
        let next = stored_checkpoint(cluster, partition);
        let known = &mut self.checkpoints[index(partition)];
        assert!(
            next >= *known,
            "partition {partition}: the checkpoint goes back from {known} to {next}"
        );
        *known = next;
        let trace: &PartitionTrace = &reference.partitions[index(partition)];
        let seen = &mut self.folded[index(partition)];
        while let Some(traced) = trace.records.get(*seen) {
            if next.admits(traced.offset) {
                break;
            }
            check_passed(partition, next, traced, cluster, world);
            *seen += 1;
        }
    }
}

fn check_passed(
    partition: Partition,
    next: NextOffset,
    traced: &RecordTrace,
    cluster: &Cluster,
    world: &State,
) {
    let offset = traced.offset;
    let is_sent = !traced.is_dead_letter || world.letters[index(partition)].contains(&offset);
    assert!(
        is_sent,
        "partition {partition}: the checkpoint is at {next}, but the dead letter of offset {offset} is not sent"
    );
    if let Some((head, timestamp)) = &traced.head {
        assert!(
            cluster.newest(head) >= Some(*timestamp),
            "partition {partition}: the checkpoint is at {next}, but {head} is not stored as of offset {offset}"
        );
    }
}

/// The checkpoint that is stored for a partition, by its timestamp.
fn stored_checkpoint(cluster: &Cluster, partition: Partition) -> NextOffset {
    let zero = WriteTimestamp::checkpoint(NextOffset::START).micros();
    let stored = cluster
        .rows("checkpoints")
        .into_iter()
        .find(|row| row.key.clustering_int() == Some(partition.get()));
    stored.map_or(NextOffset::START, |row| {
        NextOffset::new(row.timestamp - zero)
    })
}
