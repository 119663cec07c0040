//! What must hold at every moment, whatever has befallen: judged by the log, the reference run and the stored cells,
//! never by a worker's memory.
//!
//! `writes`: nothing is written that an undisturbed run does not write (rules 1, 3, 5), and nothing stored goes back.
//! `order`: heads never lead rows and pieces, checkpoints never lead heads and dead letters, the group's offset never
//! leads the checkpoint (rule 4). `letters`: dead letters are the refused records and no others. `reader`: whoever
//! reads head first finds no hole below it. `contents`: in the end the store holds what the undisturbed run left.

mod contents;
mod order;
mod reader;
mod writes;

use std::sync::Arc;

use tidemark_event::{NextOffset, Partition};
use tidemark_projector::DeadLetter;
use tidemark_store::double::{Cluster, Request};

pub(crate) use reader::Reader;

use crate::{
    reference::Reference,
    workload::{Workload, index},
    world::State,
};

/// All checkers of one run.
pub(crate) struct Checkers {
    workload: Arc<Workload>,
    reference: Arc<Reference>,
    order: order::Order,
}

impl Checkers {
    pub(crate) fn new(workload: Arc<Workload>, reference: Arc<Reference>) -> Self {
        let order = order::Order::of(&reference);
        Self {
            workload,
            reference,
            order,
        }
    }

    /// Serves a request to the store, and looks at what it changed.
    pub(crate) fn serve(
        &mut self,
        request: &Request,
        cluster: &Cluster,
        world: &State,
    ) -> tidemark_store::double::Answer {
        if !request.is_write() {
            return request.apply(cluster);
        }
        let rows = request.rows();
        let before: Vec<Option<i64>> = rows.iter().map(|row| cluster.newest(&row.key)).collect();
        let answer = request.apply(cluster);
        for (row, before) in rows.iter().zip(before) {
            writes::check(row, before, cluster, &self.reference, &self.workload);
            self.order
                .check(row, cluster, &self.reference, &self.workload, world);
        }
        answer
    }

    /// The newest checkpoint that is stored.
    pub(crate) fn checkpoint(&self, partition: Partition) -> NextOffset {
        self.order.checkpoint(partition)
    }

    /// A worker has stored the group's offset.
    pub(crate) fn committed(&self, partition: Partition, next: NextOffset) {
        let stored = self.order.checkpoint(partition);
        assert!(
            next <= stored,
            "partition {partition}: the group's offset is {next}, ahead of the checkpoint at {stored}"
        );
    }

    /// Dead letters have been sent.
    pub(crate) fn sent(&self, letters: &[DeadLetter]) {
        for letter in letters {
            let trace = &self.reference.partitions[index(letter.partition)];
            let offset = letter.record.offset;
            let place = trace
                .records
                .binary_search_by_key(&offset, |traced| traced.offset);
            let is_dead_letter = place.is_ok_and(|place| trace.records[place].is_dead_letter);
            assert!(
                is_dead_letter,
                "partition {}: a dead letter of offset {offset}, which is not refused",
                letter.partition
            );
        }
    }

    /// The store was set back to what it was: what was known of it is forgotten.
    pub(crate) fn restored(&mut self, cluster: &Cluster) {
        self.order = order::Order::of(&self.reference);
        self.order.look(cluster, &self.workload);
    }

    /// Everything is folded and at rest.
    pub(crate) fn finish(&self, cluster: &Cluster, world: &State) {
        for log in &self.workload.partitions {
            let letters = &world.letters[index(log.partition)];
            let wanted = log.dead_letters();
            assert_eq!(
                *letters, wanted,
                "dead letters of partition {}",
                log.partition
            );
        }
        contents::check(cluster, &self.reference);
    }
}
