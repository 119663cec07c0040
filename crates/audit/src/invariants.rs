//! What holds of stored rows by themselves, whatever the log says. Nothing here folds, and nothing uses a fold's code:
//! plain counting over plain rows.
//!
//! Each looks only at what is of one moment, by the order in which shelves are filled ([`Shelves`]), and counts what it
//! passes over.

mod agreement;
mod inbox;
mod roaming;
mod unread;

use tidemark_fold::View;

use crate::{Invariant, InvariantReport, Scope, Shelf, Shelves, findings::Findings};

/// How often an invariant was looked at.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    checked: u64,
    passed_over: u64,
}

/// Whether two things were of one moment, so that they could be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looked {
    Checked,
    PassedOver,
}

impl Count {
    fn add(&mut self, looked: Looked) {
        match looked {
            Looked::Checked => self.checked += 1,
            Looked::PassedOver => self.passed_over += 1,
        }
    }
}

/// Checks every invariant that the views at hand allow to.
pub(crate) fn check(
    shelves: &Shelves,
    scope: &Scope,
    findings: &mut Findings,
) -> Vec<InvariantReport> {
    let Shelves {
        roaming,
        sessions,
        inbox,
        seen,
    } = shelves;
    let mut reports = Vec::new();
    let mut report = |invariant, count: Count| {
        reports.push(InvariantReport {
            invariant,
            checked: count.checked,
            passed_over: count.passed_over,
        });
    };
    let mut placed = Count::default();
    if let Some(shelf) = roaming {
        placed.checked += placement(shelf, scope, findings);
    }
    if let Some(shelf) = sessions {
        placed.checked += placement(shelf, scope, findings);
    }
    if let Some(shelf) = inbox {
        placed.checked += placement(shelf, scope, findings);
    }
    report(Invariant::Placement, placed);
    if let Some(roaming) = roaming
        && scope.user.is_none()
    {
        report(
            Invariant::RoamingIsWhole,
            roaming::check(roaming, scope, findings),
        );
    }
    if let (Some(roaming), Some(sessions)) = (roaming, sessions) {
        report(
            Invariant::UnreadIsCounted,
            unread::check(roaming, sessions, scope, findings),
        );
    }
    if scope.user.is_none() {
        report(
            Invariant::ViewsAgree,
            agreement::check(shelves, scope, findings),
        );
    }
    if let (Some(roaming), Some(inbox)) = (roaming, inbox) {
        report(
            Invariant::InboxIsExact,
            inbox::check(roaming, inbox, *seen, scope, findings),
        );
    }
    reports
}

/// Tells of each row that stands where no reader looks for it. Gives the number of rows.
fn placement<V: View>(shelf: &Shelf<V>, scope: &Scope, findings: &mut Findings) -> u64 {
    for misplaced in &shelf.misplaced {
        if !scope.admits_conversation(&misplaced.conversation) {
            continue;
        }
        findings.note_broken(
            (V::NAME, Invariant::Placement),
            &misplaced.conversation,
            misplaced.key.as_str(),
            Some(misplaced.applied),
            (misplaced.wanted.clone(), misplaced.found.clone()),
        );
    }
    let rows = shelf.conversations.values().map(|stored| stored.rows.len());
    (rows.sum::<usize>() + shelf.misplaced.len()) as u64
}
