//! Whatever is taken out of a store is missed.

use tidemark_audit::{Shelves, What};
use tidemark_fold::{Applied, View};
use tidemark_model::{Logged, generate::Cast};

use crate::world::{at_rest, audit, rules};

/// Takes every row and member away that are stored of the beginning of a log, one after the other, and looks whether
/// it is missed.
fn misses_everything<V: View + Clone>(
    log: &[Logged],
    stored: usize,
    view: impl Fn(&mut Shelves) -> &mut Option<tidemark_audit::Shelf<V>>,
) -> usize {
    let whole = view(&mut at_rest(&log[..stored], rules())).take().unwrap();
    let mut planted = Vec::new();
    for (id, stored) in &whole.conversations {
        for key in stored.rows.keys() {
            let mut shelf = whole.clone();
            let rows = &mut shelf.conversations.get_mut(id).unwrap().rows;
            let applied = rows.remove(key).unwrap().applied();
            planted.push((shelf, id.clone(), applied));
        }
        for user in stored.members.keys() {
            let mut shelf = whole.clone();
            let members = &mut shelf.conversations.get_mut(id).unwrap().members;
            let applied = members.remove(user).unwrap().applied;
            planted.push((shelf, id.clone(), applied));
        }
    }
    let count = planted.len();
    for (shelf, id, applied) in planted {
        let mut shelves = Shelves::default();
        *view(&mut shelves) = Some(shelf);
        let report = audit(log, shelves, rules().log);
        let first = &report.differences[0];
        let found = (
            first.view,
            first.conversation.clone(),
            first.applied,
            &first.what,
        );
        assert_eq!(found, (V::NAME, Some(id), Some(applied), &What::Missing));
        let missing = report.differences.iter();
        assert_eq!(missing.filter(|it| it.what == What::Missing).count(), 1);
    }
    count
}

#[test]
fn whatever_is_taken_away_is_missed_however_far_the_log_has_gone_on() {
    let mut planted = 0;
    for seed in 0..6 {
        let log = Cast::SMALL.log_from_seed(seed, 70);
        for stored in [40, 70] {
            planted += misses_everything(&log, stored, |shelves| &mut shelves.roaming);
            planted += misses_everything(&log, stored, |shelves| &mut shelves.sessions);
            planted += misses_everything(&log, stored, |shelves| &mut shelves.inbox);
        }
    }
    assert!(planted > 500, "{planted} things were taken away");
}
