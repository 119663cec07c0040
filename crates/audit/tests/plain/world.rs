//! Logs as records, stores as shelves, and what an audit of both says.

use std::{collections::BTreeMap, fmt::Debug};

use tidemark_audit::{
    Difference, PartitionAudit, PartitionReport, RawRecord, Scope, Seen, Shelves,
    StoredConversation,
};
use tidemark_event::{ConversationId, Fingerprint, LogTime, NextOffset, Offset, Partition, encode};
use tidemark_fold::{GenerationSettings, LogSettings, View};
use tidemark_model::{Logged, generate::Cast};
use tidemark_proof::{Rules, STEPS, Shelf, Worker};
use tidemark_store::{Checkpoint, LastRecord};

pub(crate) const PARTITION: Partition = Partition::new(0);

/// More differences than any test makes.
const LISTED: usize = 10_000;

pub(crate) fn rules() -> Rules {
    Rules::of(&Cast::SMALL.settings, Cast::SMALL.fan_out_limit)
}

/// A record with bytes of its own.
#[derive(Debug, Clone)]
pub(crate) struct Bytes {
    pub(crate) offset: Offset,
    pub(crate) append_time: i64,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

impl Bytes {
    pub(crate) fn of(logged: &Logged) -> Self {
        Self {
            offset: logged.offset,
            append_time: logged.log_time.millis(),
            key: logged.event.conversation.as_str().as_bytes().to_vec(),
            value: encode(&logged.event).unwrap(),
        }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(Some(&self.key), Some(&self.value), self.append_time)
    }

    pub(crate) fn raw(&self) -> RawRecord<'_> {
        RawRecord {
            offset: self.offset,
            append_time: self.append_time,
            key: Some(&self.key),
            value: Some(&self.value),
        }
    }
}

/// The offset behind a log's last record.
pub(crate) fn end_of(log: &[Logged]) -> NextOffset {
    log.last()
        .map_or(NextOffset::START, |last| NextOffset::after(last.offset))
}

/// The checkpoint of a worker whose next offset is this.
pub(crate) fn checkpoint(log: &[Logged], next_offset: NextOffset) -> Option<Checkpoint> {
    let folded = log
        .iter()
        .rfind(|logged| !next_offset.admits(logged.offset));
    (next_offset > NextOffset::START).then(|| Checkpoint {
        next_offset,
        last: folded.map(|logged| LastRecord {
            offset: logged.offset,
            fingerprint: Bytes::of(logged).fingerprint(),
        }),
        log_time: folded.map_or(LogTime::START, |logged| logged.log_time),
    })
}

/// What a worker has stored once it has folded all of a log, with its checkpoint at the end.
pub(crate) fn folded<V: View + Clone>(
    log: &[Logged],
    rules: Rules,
    batch: usize,
) -> tidemark_audit::Shelf<V> {
    let (shelf, _) = tidemark_proof::fold_all::<V>(log, rules, batch);
    shelf_at_rest(log, &shelf, rules.generation)
}

pub(crate) fn shelf_at_rest<V: View + Clone>(
    log: &[Logged],
    shelf: &Shelf<V>,
    settings: GenerationSettings,
) -> tidemark_audit::Shelf<V> {
    let mut reader = Reading::of(vec![shelf.clone()], Dice(1));
    reader.read(log, settings)
}

/// The whole store at rest behind a log.
pub(crate) fn at_rest(log: &[Logged], rules: Rules) -> Shelves {
    Shelves {
        roaming: Some(folded(log, rules, 7)),
        sessions: Some(folded(log, rules, 5)),
        inbox: Some(folded(log, rules, 3)),
        seen: Seen::default(),
    }
}

/// Numbers that look random, the same for a seed.
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides.max(1) as u64) as usize
    }
}

/// What a store holds at one moment after another while workers fold a log into it: they die, forget, and come back
/// late as zombies.
pub(crate) fn moments<V: View + Clone>(
    log: &[Logged],
    rules: Rules,
    dice: &mut Dice,
) -> Vec<Shelf<V>> {
    let mut shelf = Shelf::<V>::default();
    let mut moments = vec![shelf.clone()];
    let mut worker = Worker::new(rules);
    let mut flushed = NextOffset::START;
    let mut zombie = None;
    while shelf.next < end_of(log) {
        let batch: Vec<Logged> = log
            .iter()
            .filter(|logged| flushed.admits(logged.offset))
            .take(1 + dice.roll(9))
            .cloned()
            .collect();
        let next = batch
            .last()
            .map_or(flushed, |last| NextOffset::after(last.offset));
        let (changes, _) = worker.fold(&batch, &shelf, dice.roll(2) == 0);
        match dice.roll(10) {
            // It is frozen before it writes, and another takes over.
            0 if zombie.is_none() => zombie = Some((changes, next)),
            // It dies in the middle of a step.
            dies @ 1..=3 => {
                for step in &STEPS[..dies] {
                    shelf.write(*step, &changes, next, false);
                    moments.push(shelf.clone());
                }
                shelf.write(STEPS[dies], &changes, next, true);
                moments.push(shelf.clone());
            }
            _ => {
                // The checkpoint may trail.
                let steps = if dice.roll(4) == 0 && next < end_of(log) {
                    3
                } else {
                    4
                };
                for step in &STEPS[..steps] {
                    shelf.write(*step, &changes, next, true);
                    moments.push(shelf.clone());
                    shelf.write(*step, &changes, next, false);
                    moments.push(shelf.clone());
                }
                flushed = next;
                continue;
            }
        }
        // Another worker begins at the checkpoint.
        worker = Worker::new(rules);
        flushed = shelf.next;
        if dice.roll(2) == 0
            && let Some((changes, next)) = zombie.take()
        {
            for step in STEPS {
                shelf.write(step, &changes, next, false);
                moments.push(shelf.clone());
            }
            flushed = shelf.next;
        }
    }
    moments
}

/// An audit that reads a store while it changes.
#[derive(Debug)]
pub(crate) struct Reading<V: View> {
    moments: Vec<Shelf<V>>,
    now: usize,
    dice: Dice,
}

impl<V: View> Reading<V> {
    /// Begins at some moment.
    pub(crate) fn of(moments: Vec<Shelf<V>>, mut dice: Dice) -> Self {
        let now = dice.roll(moments.len());
        Self { moments, now, dice }
    }

    /// Some moment from now on, but not far.
    fn soon(&mut self) -> usize {
        let left = self.moments.len() - self.now;
        self.now + self.dice.roll(left.min(6))
    }

    /// Reads a table row by row, each at a moment of its own while the table is read.
    fn table<K: Ord + Clone, T: Clone>(
        &mut self,
        of: impl Fn(&Shelf<V>) -> &BTreeMap<K, T>,
    ) -> BTreeMap<K, T> {
        let (first, last) = (self.now, self.soon());
        let mut rows = BTreeMap::new();
        let keys: Vec<K> = of(&self.moments[last]).keys().cloned().collect();
        for key in keys {
            let moment = first + self.dice.roll(last - first + 1);
            if let Some(row) = of(&self.moments[moment]).get(&key) {
                rows.insert(key, row.clone());
            }
        }
        self.now = last;
        rows
    }

    /// Reads everything of the view, in the order that an audit reads it.
    pub(crate) fn read(
        &mut self,
        log: &[Logged],
        settings: GenerationSettings,
    ) -> tidemark_audit::Shelf<V> {
        let mut shelf = tidemark_audit::Shelf::<V>::empty(1, settings);
        shelf.checkpoint = checkpoint(log, self.moments[self.now].next);
        self.now = self.soon();
        let is_read_first = V::NAME == tidemark_fold::ViewName::Sessions;
        let mut rows = BTreeMap::new();
        if is_read_first {
            rows = self.table(|shelf| &shelf.rows);
        }
        let fingerprints: BTreeMap<Offset, Fingerprint> = log
            .iter()
            .map(|logged| (logged.offset, Bytes::of(logged).fingerprint()))
            .collect();
        for (id, mut head) in self.table(|shelf| &shelf.heads) {
            head.fingerprint = fingerprints[&head.applied];
            shelf.conversation(id).head = Some(head);
        }
        for ((id, user), member) in self.table(|shelf| &shelf.members) {
            shelf.conversation(id).members.insert(user, member);
        }
        if !is_read_first {
            rows = self.read_other_rows();
        }
        for ((id, key), row) in rows {
            shelf.conversation(id).rows.insert(key, row);
        }
        self.read_pieces(&mut shelf);
        shelf
    }

    /// Places come first, copies and messages then.
    fn read_other_rows(&mut self) -> BTreeMap<(ConversationId, V::RowKey), V::Row> {
        let mut rows = self.table(|shelf| &shelf.rows);
        rows.retain(|(_, key), _| V::keeps_in_memory(key));
        let copies = self.table(|shelf| &shelf.rows).into_iter();
        rows.extend(copies.filter(|((_, key), _)| !V::keeps_in_memory(key)));
        rows
    }

    fn read_pieces(&mut self, shelf: &mut tidemark_audit::Shelf<V>) {
        let ids = self.table(|shelf| &shelf.ids);
        let pieces = self.table(|shelf| &shelf.pieces);
        for (id, stored) in &mut shelf.conversations {
            let Some(head) = &stored.head else { continue };
            for span in &head.dedupe.live {
                let found = ids.get(&(id.clone(), span.no));
                let found = found.into_iter().flatten().copied().collect();
                stored.ids.insert(span.no, found);
            }
            for ((of, key), piece) in &pieces {
                if of == id {
                    stored.pieces.insert(key.clone(), piece.clone());
                }
            }
        }
    }
}

/// Audits one partition.
pub(crate) fn audit(
    log: &[Logged],
    shelves: Shelves,
    log_settings: LogSettings,
) -> PartitionReport {
    audit_of(log, shelves, log_settings, &Scope::default())
}

pub(crate) fn audit_of(
    log: &[Logged],
    shelves: Shelves,
    log_settings: LogSettings,
    scope: &Scope,
) -> PartitionReport {
    let bytes: Vec<Bytes> = log.iter().map(Bytes::of).collect();
    audit_bytes(&bytes, end_of(log), shelves, log_settings, scope)
}

pub(crate) fn audit_bytes(
    log: &[Bytes],
    end: NextOffset,
    shelves: Shelves,
    log_settings: LogSettings,
    scope: &Scope,
) -> PartitionReport {
    let mut audit = PartitionAudit::new(PARTITION, log_settings, shelves, scope, LISTED);
    for record in log {
        if audit.fold(&record.raw()).unwrap().is_break() {
            break;
        }
    }
    audit.finish(end)
}

#[track_caller]
pub(crate) fn assert_clean(report: &PartitionReport) {
    assert!(
        report.differences.is_empty(),
        "{}",
        lines(&report.differences).join("\n")
    );
}

pub(crate) fn lines(differences: &[Difference]) -> Vec<String> {
    differences.iter().map(Difference::to_string).collect()
}

/// A conversation on a shelf.
#[track_caller]
pub(crate) fn of<'s, V: View>(
    shelf: &'s mut Option<tidemark_audit::Shelf<V>>,
    conversation: &str,
) -> &'s mut StoredConversation<V> {
    let id = tidemark_model::story::conversation(conversation);
    shelf
        .as_mut()
        .unwrap()
        .conversations
        .get_mut(&id)
        .unwrap_or_else(|| panic!("{id} is not stored"))
}

/// The one key of a map whose debug form holds this text.
#[track_caller]
pub(crate) fn key_of<K: Clone + Debug, T>(map: &BTreeMap<K, T>, text: &str) -> K {
    let mut keys = map.keys().filter(|key| format!("{key:?}").contains(text));
    match (keys.next(), keys.next()) {
        (Some(key), None) => key.clone(),
        _ => panic!(
            "not one key with {text}: {:?}",
            map.keys().collect::<Vec<_>>()
        ),
    }
}
