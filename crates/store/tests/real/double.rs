//! The store in memory against the real one: the same writes, of any age and in any order, and the same answers. What a
//! simulation finds rests on this.
//!
//! Ages are few, so that many writes tie and are decided cell by cell.

use std::{collections::BTreeSet, fmt::Debug, sync::Arc};

use futures::TryStreamExt;
use tidemark_event::{LogTime, NextOffset};
use tidemark_fold::{
    AcceptedId, PieceNo,
    inbox::{Inbox, InboxKey, InboxRow, Period, Place},
    roaming::Roaming,
};
use tidemark_store::{
    Generation, GenerationNo, Order, Store, TokenRange,
    double::{Cluster, Direct},
};

use crate::{
    rows::{checkpoint, head},
    world::{
        FOLD, PARTITION, World, asked, changed, conversation, event_id, member, message, seq, user,
    },
};

/// Conversations that are written at random.
const CASES: u64 = 40;

/// Writes of each.
const WRITES: usize = 60;

/// Offsets that they are stamped with.
const AGES: u64 = 6;

/// A generation in memory, in tables of its own.
pub(crate) async fn in_memory() -> Store {
    let cluster = Cluster::new();
    let wire = Arc::new(Direct(cluster.clone()));
    let store = Store::over(&cluster, "memory", wire, 256);
    store.setup(&asked()).await.unwrap();
    store
}

/// A step of splitmix64, below `bound`.
fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % bound
}

/// Writes something into a conversation of both views, as the dice fall.
async fn write(
    name: &str,
    dice: &mut u64,
    roaming: &Generation<Roaming>,
    inbox: &Generation<Inbox>,
) {
    let mut die = |bound: u64| draw(dice, bound);
    let age = die(AGES) as i64;
    let mut row = message(1 + die(3), age, ["", "a", "b", "ab"][die(4) as usize]);
    row.message.reply_to = (die(2) == 0).then(|| seq(1 + die(3)));
    row.message.occurred_at = (die(2) == 0).then(|| die(3) as i64);
    row.message.logged_at = LogTime::from_millis(die(3) as i64);
    let name_of_user = ["ann", "bo", "cy"][die(3) as usize];
    match die(7) {
        0 | 1 => {
            let changes = changed(name, |changes| changes.rows = vec![(row.message.seq, row)]);
            roaming.write_rows(PARTITION, &changes).await.unwrap();
        }
        2 => {
            let period = Period::new(3_000 + die(2) as i64);
            let key = InboxKey::Copy {
                user: user(&format!("{name}-{name_of_user}")),
                period,
                seq: row.message.seq,
            };
            let changes = changed(name, |changes| {
                changes.rows = vec![(key, InboxRow::Copy(row))]
            });
            inbox.write_rows(PARTITION, &changes).await.unwrap();
        }
        3 => {
            let key = InboxKey::Place {
                user: user(&format!("{name}-{name_of_user}")),
            };
            let place = Place {
                applied: row.applied,
                member: member(die(3) as i64),
                devices: Default::default(),
                copied_to: (die(2) == 0).then(|| seq(die(3))),
            };
            let changes = changed(name, |changes| {
                changes.rows = vec![(key, InboxRow::Place(place))]
            });
            inbox.write_rows(PARTITION, &changes).await.unwrap();
        }
        4 => {
            let mut piece = member(age);
            piece.cleared_to = seq(die(3));
            let id = AcceptedId {
                id: event_id(u128::from(die(3))),
                offset: row.applied,
                ordinal: die(3),
                log_time: LogTime::from_millis(die(3) as i64),
                seq: (die(2) == 0).then(|| seq(1 + die(3))),
            };
            let no = PieceNo::new(die(2));
            let changes = changed(name, |changes| {
                changes.members = vec![(user(name_of_user), piece)];
                changes.ids = vec![(no, id)];
            });
            roaming.write_pieces(&changes).await.unwrap();
        }
        5 => {
            let changes = changed(name, |changes| changes.head = Some(head(age, die(5))));
            roaming.write_heads(&changes).await.unwrap();
        }
        _ => {
            let pieces = [(conversation(name), PieceNo::new(die(2)))];
            let at = checkpoint(1 + age);
            roaming.delete_dedupe_pieces(&pieces, &at).await.unwrap();
            roaming.write_checkpoint(PARTITION, &at).await.unwrap();
        }
    }
}

/// Everything that readers are told of a conversation.
async fn told(name: &str, roaming: &Generation<Roaming>, inbox: &Generation<Inbox>) -> Vec<String> {
    let id = conversation(name);
    let mut told = Vec::new();
    let mut tell = |what: &dyn Debug| told.push(format!("{what:?}"));
    let all = roaming.messages(&id, (seq(1), seq(9)), 9, Order::Ascending);
    tell(&all.await.unwrap());
    let newest = roaming.messages(&id, (seq(1), seq(9)), 2, Order::Descending);
    tell(&newest.await.unwrap());
    tell(&roaming.head(&id).await.unwrap());
    tell(&roaming.members_page(&id, None, 9).await.unwrap());
    let after = user("ann");
    tell(&roaming.members_page(&id, Some(&after), 1).await.unwrap());
    for number in 0..3 {
        let pieces = [PieceNo::FIRST, PieceNo::new(1)];
        let accepted = roaming
            .accepted(&id, &pieces, event_id(number))
            .await
            .unwrap();
        tell(&accepted.into_iter().collect::<BTreeSet<_>>());
    }
    for person in ["ann", "bo", "cy"] {
        let person = user(&format!("{name}-{person}"));
        tell(&inbox.places_of(&person).await.unwrap());
        for period in [3_000, 3_001].map(Period::new) {
            let page = inbox.copies_of(&person, period, None, 2).await.unwrap();
            let after = page
                .last()
                .map(|of| (of.conversation.clone(), of.stored.message.seq));
            tell(&page);
            let after = after
                .as_ref()
                .map(|(conversation, seq)| (conversation, *seq));
            tell(&inbox.copies_of(&person, period, after, 9).await.unwrap());
        }
    }
    told
}

#[tokio::test]
#[ignore = "needs TIDEMARK_CQL"]
async fn the_store_in_memory_answers_as_the_real_one_whatever_was_written() {
    World::alone(|world| async move {
        let memory = in_memory().await;
        let real = (world.open().await, world.open().await);
        let double = (
            memory.open(GenerationNo::FIRST, FOLD).await.unwrap(),
            memory.open(GenerationNo::FIRST, FOLD).await.unwrap(),
        );
        for case in 0..CASES {
            let name = format!("case-{case}");
            let (mut one, mut other) = (case, case);
            for _ in 0..WRITES {
                write(&name, &mut one, &real.0, &real.1).await;
                write(&name, &mut other, &double.0, &double.1).await;
            }
            let found = told(&name, &double.0, &double.1).await;
            let wanted = told(&name, &real.0, &real.1).await;
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_eq!(
                    found, wanted,
                    "{name}: of the store in memory, and of the real one"
                );
            }
        }
        let checkpoints = (real.0.checkpoints().await, double.0.checkpoints().await);
        assert_eq!(checkpoints.0.unwrap(), checkpoints.1.unwrap());
        assert_eq!(scanned(&double.0).await, scanned(&real.0).await);
    })
    .await;
}

/// Every row of the scans, in some order of their own.
async fn scanned(roaming: &Generation<Roaming>) -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    let ranges = || TokenRange::split(std::num::NonZeroU32::MIN.saturating_add(4));
    let messages: Vec<_> = roaming.scan_messages(ranges()).try_collect().await.unwrap();
    let heads: Vec<_> = roaming.scan_heads(ranges()).try_collect().await.unwrap();
    let members: Vec<_> = roaming.scan_members(ranges()).try_collect().await.unwrap();
    rows.extend(messages.iter().map(|row| format!("{row:?}")));
    rows.extend(heads.iter().map(|row| format!("{row:?}")));
    rows.extend(members.iter().map(|row| format!("{row:?}")));
    assert_eq!(rows.len(), messages.len() + heads.len() + members.len());
    rows
}

/// Before anything is made, and after it was dropped, a store in memory says what a server says.
#[tokio::test]
async fn a_store_in_memory_that_is_not_set_up_says_so() {
    let cluster = Cluster::new();
    let store = Store::over(&cluster, "memory", Arc::new(Direct(cluster.clone())), 1);
    assert_eq!(store.log_settings().await.unwrap(), None);
    store.setup(&asked()).await.unwrap();
    assert!(store.log_settings().await.unwrap().is_some());
    assert_eq!(store.setup(&asked()).await.unwrap().active.len(), 3);
    let generation = store
        .open::<Roaming>(GenerationNo::FIRST, FOLD)
        .await
        .unwrap();
    assert_eq!(generation.checkpoint(PARTITION).await.unwrap(), None);
    let at = checkpoint(NextOffset::START.get() + 1);
    generation.write_checkpoint(PARTITION, &at).await.unwrap();
    assert_eq!(generation.checkpoint(PARTITION).await.unwrap(), Some(at));
}
