//! What an audit found, for people and for machines.

use std::fmt;

use serde::Serialize;
use tidemark_event::{ConversationId, Offset, Partition};
use tidemark_fold::ViewName;

use crate::PartitionReport;

/// What an audit found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was looked at, view by view.
    pub views: Vec<ViewReport>,
    /// How often each invariant was looked at, apart from the folds.
    pub invariants: Vec<InvariantReport>,
    /// Partitions that end, for this release, at a record of a schema it does not know.
    pub unknown: Vec<UnknownRecord>,
    /// How many differences there are.
    pub difference_count: u64,
    /// The first of them, by partition.
    pub differences: Vec<Difference>,
}

/// What was looked at in one view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ViewReport {
    /// The view.
    pub view: ViewName,
    /// Which build of it.
    pub generation: u16,
    /// Conversations that exist in the log or in the store.
    pub conversations: u64,
    /// What of the store was compared.
    pub compared: Compared,
    /// What became of the log's records.
    pub records: Records,
}

/// How much of the store was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Heads.
    pub heads: u64,
    /// Member pieces.
    pub members: u64,
    /// Accepted ids, in the pieces that are inside the window.
    pub ids: u64,
    /// Pieces of the view's own.
    pub pieces: u64,
    /// Rows.
    pub rows: u64,
}

/// What became of the log's records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Records {
    /// Records read and, where they are in the audit's scope, folded.
    pub read: u64,
    /// Accepted.
    pub accepted: u64,
    /// Dropped as duplicates.
    pub duplicates: u64,
    /// Refused.
    pub refused: u64,
    /// Without a sound header or body.
    pub undecodable: u64,
}

/// How often an invariant was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InvariantReport {
    /// Which one.
    pub invariant: Invariant,
    /// So often it was looked at.
    pub checked: u64,
    /// So often what it compares was not of one moment, since workers were at work.
    pub passed_over: u64,
}

/// The record at which a partition ends for this release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownRecord {
    /// The partition.
    pub partition: Partition,
    /// The record.
    pub offset: Offset,
    /// What is unknown about it.
    pub schema: String,
}

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The view.
    pub view: ViewName,
    /// The partition of the log.
    pub partition: Partition,
    /// The conversation, if it is about one.
    pub conversation: Option<ConversationId>,
    /// What of it: a row, a piece, the head, the checkpoint.
    pub key: String,
    /// The applied offset: of what is stored, or where nothing is, of what should be.
    pub applied: Option<Offset>,
    /// What is wrong.
    #[serde(flatten)]
    pub what: What,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// The checkpoint promises it and the store has it not.
    Missing,
    /// The store has it, and the log never makes it.
    Extra,
    /// The store has it as of an older event than the checkpoint promises.
    Stale {
        /// The newest event below the checkpoint that changes it.
        promised: Offset,
    },
    /// A field is not what the log makes it, as of the row's own applied offset.
    Differs(FieldDifference),
    /// What is stored contradicts itself.
    Broken {
        /// What does not hold.
        invariant: Invariant,
        /// What should be there.
        wanted: String,
        /// What is.
        found: String,
    },
}

/// The first field in which two values differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldDifference {
    /// The field's name, with those of the fields around it.
    pub field: String,
    /// What the log makes it.
    pub wanted: String,
    /// What the store has.
    pub found: String,
}

/// What holds in every store, whatever was folded into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Invariant {
    /// Everything stands where its readers look for it, and once.
    Placement,
    /// roaming holds 1 to last, without a gap and nothing more.
    RoamingIsWhole,
    /// A session's numbers are those of the messages above its read position.
    UnreadIsCounted,
    /// All views have the same conversations, with the same last seq.
    ViewsAgree,
    /// inbox holds a copy of exactly what a member may see, while copies are made and have not expired.
    InboxIsExact,
}

impl Invariant {
    /// Every invariant.
    pub const ALL: [Self; 5] = [
        Self::Placement,
        Self::RoamingIsWhole,
        Self::UnreadIsCounted,
        Self::ViewsAgree,
        Self::InboxIsExact,
    ];

    /// What holds, in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Placement => "everything stands where it is looked for, once",
            Self::RoamingIsWhole => "roaming holds 1 to last",
            Self::UnreadIsCounted => "unread is what can be counted",
            Self::ViewsAgree => "all views agree on last seq",
            Self::InboxIsExact => "inbox holds what is visible",
        }
    }
}

impl Report {
    /// Whether there are no differences.
    pub fn is_clean(&self) -> bool {
        self.difference_count == 0
    }

    /// Takes in the next partition, and lists at most `listed` differences of all.
    pub(crate) fn add(&mut self, partition: PartitionReport, listed: usize) {
        for found in partition.views {
            match self.views.iter_mut().find(|view| view.view == found.view) {
                Some(view) => {
                    view.conversations += found.conversations;
                    view.compared += found.compared;
                    view.records += found.records;
                }
                None => self.views.push(found),
            }
        }
        for found in partition.invariants {
            let mut known = self.invariants.iter_mut();
            match known.find(|known| known.invariant == found.invariant) {
                Some(known) => {
                    known.checked += found.checked;
                    known.passed_over += found.passed_over;
                }
                None => self.invariants.push(found),
            }
        }
        self.unknown.extend(partition.unknown);
        self.difference_count += partition.difference_count;
        let room = listed.saturating_sub(self.differences.len());
        self.differences
            .extend(partition.differences.into_iter().take(room));
    }
}

impl std::ops::AddAssign for Compared {
    fn add_assign(&mut self, other: Self) {
        self.heads += other.heads;
        self.members += other.members;
        self.ids += other.ids;
        self.pieces += other.pieces;
        self.rows += other.rows;
    }
}

impl std::ops::AddAssign for Records {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.accepted += other.accepted;
        self.duplicates += other.duplicates;
        self.refused += other.refused;
        self.undecodable += other.undecodable;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for view in &self.views {
            writeln!(f, "{view}")?;
        }
        for invariant in &self.invariants {
            writeln!(f, "{invariant}")?;
        }
        for unknown in &self.unknown {
            writeln!(f, "{unknown}")?;
        }
        if self.is_clean() {
            return f.write_str("no differences");
        }
        writeln!(f, "{} differences", self.difference_count)?;
        for difference in &self.differences {
            writeln!(f, "  {difference}")?;
        }
        let left_out = self
            .difference_count
            .saturating_sub(self.differences.len() as u64);
        if left_out > 0 {
            writeln!(f, "  and {left_out} more")?;
        }
        Ok(())
    }
}

impl fmt::Display for ViewReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            view,
            generation,
            conversations,
            compared,
            records,
        } = self;
        write!(
            f,
            "{view} generation {generation}: {conversations} conversations; compared {} rows, {} heads, {} members, \
             {} ids, {} pieces; {} records: {} accepted, {} duplicate, {} refused, {} undecodable",
            compared.rows,
            compared.heads,
            compared.members,
            compared.ids,
            compared.pieces,
            records.read,
            records.accepted,
            records.duplicates,
            records.refused,
            records.undecodable,
        )
    }
}

impl fmt::Display for InvariantReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: looked at {} times",
            self.invariant.as_str(),
            self.checked
        )?;
        match self.passed_over {
            0 => Ok(()),
            passed_over => write!(
                f,
                ", passed over {passed_over} times because workers were at work"
            ),
        }
    }
}

impl fmt::Display for UnknownRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "partition {} was read to offset {}, where a record is of a schema that this release does not know: {}",
            self.partition, self.offset, self.schema
        )
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, partition {}", self.view, self.partition)?;
        if let Some(conversation) = &self.conversation {
            write!(f, ", conversation {conversation}")?;
        }
        write!(f, ", {}", self.key)?;
        if let Some(applied) = self.applied {
            write!(f, ", applied {applied}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("missing"),
            Self::Extra => f.write_str("extra: the log never makes it"),
            Self::Stale { promised } => {
                write!(
                    f,
                    "stale: the checkpoint promises it as of offset {promised}"
                )
            }
            Self::Differs(FieldDifference {
                field,
                wanted,
                found,
            }) => write!(f, "{field} is {found}, not {wanted}"),
            Self::Broken {
                invariant,
                wanted,
                found,
            } => write!(f, "found {found}, wanted {wanted} ({})", invariant.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::field;

    fn difference(offset: i64) -> Difference {
        Difference {
            view: ViewName::Roaming,
            partition: Partition::new(3),
            conversation: ConversationId::new("g1").ok(),
            key: "seq 4".to_owned(),
            applied: Some(Offset::new(offset)),
            what: What::Differs(field("message.body", "hi", "ho")),
        }
    }

    fn partition(offsets: &[i64]) -> PartitionReport {
        PartitionReport {
            views: vec![ViewReport {
                view: ViewName::Roaming,
                generation: 1,
                conversations: 2,
                compared: Compared::default(),
                records: Records {
                    read: 5,
                    ..Records::default()
                },
            }],
            invariants: vec![InvariantReport {
                invariant: Invariant::RoamingIsWhole,
                checked: 2,
                passed_over: 1,
            }],
            unknown: None,
            difference_count: offsets.len() as u64,
            differences: offsets.iter().copied().map(difference).collect(),
        }
    }

    #[test]
    fn partitions_add_up_and_the_first_differences_are_listed() {
        let mut report = Report::default();
        report.add(partition(&[1, 2]), 3);
        report.add(partition(&[7, 8]), 3);
        let view = &report.views[0];
        assert_eq!((view.conversations, view.records.read), (4, 10));
        assert_eq!(report.invariants[0].passed_over, 2);
        assert_eq!(report.difference_count, 4);
        assert_eq!(report.differences, [1, 2, 7].map(difference));
        let text = report.to_string();
        let end = "4 differences\n  roaming, partition 3, conversation g1, seq 4, applied 1: message.body is ho, not hi\n";
        assert!(
            text.contains(end) && text.ends_with("  and 1 more\n"),
            "{text}"
        );
    }

    #[test]
    fn machines_read_a_difference_with_what_is_wrong_beside_where() {
        let json = serde_json::to_value(difference(6)).unwrap();
        let wanted = serde_json::json!({
            "view": "roaming", "partition": 3, "conversation": "g1", "key": "seq 4", "applied": 6,
            "what": "differs", "field": "message.body", "wanted": "hi", "found": "ho",
        });
        assert_eq!(json, wanted);
        let broken = What::Broken {
            invariant: Invariant::ViewsAgree,
            wanted: "a".to_owned(),
            found: "b".to_owned(),
        };
        let wanted = serde_json::json!({
            "what": "broken", "invariant": "views_agree", "wanted": "a", "found": "b",
        });
        assert_eq!(serde_json::to_value(broken).unwrap(), wanted);
    }
}
