//! Verifies that the store holds in the end what the undisturbed run left in it: the same rows with the same cells.
//!
//! Two differences are allowed. A dedupe piece that has left the window may still be there, for deleting it is the
//! last thing that a worker does and a crash may forget it. And a checkpoint may have been written later than its
//! last record, over the same hole.

use tidemark_store::double::Cluster;

use crate::reference::Reference;

pub(super) fn check(cluster: &Cluster, reference: &Reference) {
    for table in reference.full.tables() {
        let (found, wanted) = (cluster.rows(&table), reference.full.rows(&table));
        let mut found = found.into_iter().peekable();
        for wanted in wanted {
            loop {
                match found.next() {
                    Some(row) if row.key == wanted.key => {
                        assert!(
                            row.timestamp == wanted.timestamp && row.digest == wanted.digest,
                            "{row} is not as the undisturbed run left it"
                        );
                        break;
                    }
                    Some(row) if row.key < wanted.key => {
                        assert!(
                            reference.deletes.contains_key(&row.key.partition()),
                            "{row} is stored, and not by the undisturbed run"
                        );
                    }
                    _ => panic!("{wanted} is missing in the end"),
                }
            }
        }
        for row in found {
            assert!(
                reference.deletes.contains_key(&row.key.partition()),
                "{row} is stored, and not by the undisturbed run"
            );
        }
    }
}
