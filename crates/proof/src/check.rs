//! Panics where what a store holds of a view is not what the model says of the log.

use tidemark_event::{NextOffset, Offset, Seq, UserId};
use tidemark_fold::{
    GenerationSettings, Message, Outcome, View,
    inbox::{Inbox, InboxKey, InboxRow},
    roaming::Roaming,
    sessions::{BlockNo, Mode, Sessions, Tally},
};
use tidemark_model::{Model, Verdict};

use crate::Shelf;

/// Panics unless the view's conversations, members and rows are what the model says. `users` are all who may appear.
#[track_caller]
pub fn check<V: Checked>(
    shelf: &Shelf<V>,
    model: &Model,
    users: &[UserId],
    settings: &GenerationSettings,
) {
    check_common(shelf, model);
    V::check(shelf, model, users, settings);
}

/// Panics unless every outcome is the model's verdict.
#[track_caller]
pub fn check_verdicts(model: &Model, outcomes: &[(Offset, Outcome)]) {
    for (offset, outcome) in outcomes {
        let Some(wanted) = model.verdict(*offset) else {
            panic!("offset {offset} is not in the log")
        };
        let agrees = match (outcome, &wanted) {
            (Outcome::Accepted, Verdict::Accepted { .. })
            | (Outcome::Duplicate, Verdict::Duplicate) => true,
            (Outcome::Refused(reason), Verdict::Refused(wanted)) => reason.as_str() == *wanted,
            _ => false,
        };
        assert!(
            agrees,
            "offset {offset}: {outcome:?}, but the model says {wanted:?}"
        );
    }
}

fn check_message(found: &Message, wanted: &tidemark_model::Message) {
    let same = (
        found.seq == wanted.seq
            && found.event_id == wanted.event_id
            && found.sender == wanted.sender,
        found.body == wanted.body
            && found.content_type == wanted.content_type
            && found.mentions == wanted.mentions,
        found.mention_all == wanted.mention_all
            && found.silent == wanted.silent
            && found.reply_to == wanted.reply_to,
        found.edited_at == wanted.edited_at && found.recalled == wanted.recalled,
        found.occurred_at == wanted.occurred_at && found.logged_at == wanted.logged_at,
    );
    assert_eq!(
        same,
        (true, true, true, true, true),
        "{found:?}\nis not\n{wanted:?}"
    );
}

/// A view that can be held against the model.
pub trait Checked: View {
    /// Panics unless what the view's own rows show is what the model says.
    fn check(shelf: &Shelf<Self>, model: &Model, users: &[UserId], settings: &GenerationSettings);
}

fn check_common<V: View>(shelf: &Shelf<V>, model: &Model) {
    let found: Vec<_> = shelf.heads.keys().collect();
    let wanted: Vec<_> = model.conversations().collect();
    assert_eq!(found, wanted, "conversations");
    for (id, head) in &shelf.heads {
        assert_eq!(head.last_seq, model.last_seq(id), "last seq of {id}");
        let members = shelf.members_of(id);
        let present = members
            .iter()
            .filter_map(|(user, member)| Some((user.clone(), member.since()?)));
        assert_eq!(
            present.collect::<std::collections::BTreeMap<_, _>>(),
            model.members(id),
            "members of {id}"
        );
        assert_eq!(
            head.members as usize,
            model.members(id).len(),
            "members counted in {id}"
        );
        for (user, member) in members {
            let sees = (1..=head.last_seq.get())
                .map(Seq::new)
                .filter(|seq| member.sees(*seq));
            assert_eq!(
                sees.collect::<Vec<_>>(),
                model.history_visible(&user, id),
                "history of {user} in {id}"
            );
        }
    }
}

impl Checked for Roaming {
    fn check(shelf: &Shelf<Self>, model: &Model, _: &[UserId], _: &GenerationSettings) {
        for id in shelf.heads.keys() {
            let rows: Vec<_> = shelf
                .rows
                .iter()
                .filter(|((conversation, _), _)| conversation == id)
                .collect();
            let wanted = model.messages(id);
            assert_eq!(rows.len(), wanted.len(), "messages of {id}");
            for ((_, row), wanted) in rows.into_iter().zip(&wanted) {
                check_message(&row.message, wanted);
            }
        }
    }
}

impl Checked for Sessions {
    fn check(shelf: &Shelf<Self>, model: &Model, users: &[UserId], settings: &GenerationSettings) {
        for (id, head) in &shelf.heads {
            for user in users {
                let row = shelf.rows.get(&(id.clone(), user.clone()));
                let wanted = model.session(user, id);
                assert_eq!(row.is_some(), wanted.is_some(), "session of {user} in {id}");
                let (Some(row), Some(wanted)) = (row, wanted) else {
                    continue;
                };
                let known = NextOffset::after(head.applied);
                let blocks: Vec<_> =
                    BlockNo::covering(row.first_counting(), head.last_seq, settings.block_seqs)
                        .map(|no| {
                            if no == head.extra.block.no {
                                &head.extra.block
                            } else {
                                &shelf.pieces[&(id.clone(), no)]
                            }
                        })
                        .collect();
                let derived = Tally::of(
                    blocks,
                    user,
                    row.first_counting(),
                    head.last_seq,
                    &row.hidden,
                    known,
                );
                let shown = row.completed(head);
                let derived = if row.left { Tally::default() } else { derived };
                if row.mode == Mode::FannedOut {
                    assert_eq!(
                        row.tally, derived,
                        "the kept and the derived numbers of {user} in {id}"
                    );
                } else {
                    let by_name = (&row.tally.mentions, row.tally.mention_count);
                    assert_eq!(
                        by_name,
                        (&derived.mentions, derived.mention_count),
                        "mentions of {user} in {id}"
                    );
                }
                let newest = shown
                    .newest
                    .as_ref()
                    .filter(|newest| shown.shows(newest.message.seq));
                assert_eq!(
                    newest.is_some(),
                    wanted.last_message.is_some(),
                    "last message of {user} in {id}"
                );
                if let (Some(newest), Some(wanted)) = (newest, &wanted.last_message) {
                    let mut message = (*newest.message).clone();
                    if !newest.is_whole {
                        assert!(
                            wanted.body.starts_with(&message.body),
                            "the beginning of {wanted:?}"
                        );
                        message.body.clone_from(&wanted.body);
                        message.mentions.clone_from(&wanted.mentions);
                    }
                    check_message(&message, wanted);
                }
                let found = tidemark_model::Session {
                    conversation: id.clone(),
                    kind: shown.kind,
                    title: shown.title.clone(),
                    members: shown.members as usize,
                    last_seq: shown.last_seq,
                    last_message: wanted.last_message.clone(),
                    last_active_at: shown.last_active,
                    read_seq: shown.read_seq,
                    unread: derived.unread,
                    unread_mentions: derived.mentions.clone(),
                    mentioned_all: derived.mentioned_all,
                    cleared_to: shown.cleared_to,
                    peer_read_seq: wanted.peer_read_seq.map(|_| shown.peer_read_seq),
                    marked_unread: shown.marked_unread,
                    pinned: shown.pinned,
                    muted: shown.muted,
                    draft: shown.draft.clone(),
                    left: shown.left,
                    listed: shown.is_listed(shown.last_seq),
                };
                assert_eq!(found, wanted, "session of {user} in {id}");
            }
        }
    }
}

impl Checked for Inbox {
    fn check(shelf: &Shelf<Self>, model: &Model, users: &[UserId], _: &GenerationSettings) {
        for (id, head) in &shelf.heads {
            assert_eq!(
                head.extra.copied_to,
                model.copied_to(id),
                "copied_to of {id}"
            );
            for user in users {
                let place = shelf
                    .rows
                    .get(&(id.clone(), InboxKey::Place { user: user.clone() }));
                let Some(InboxRow::Place(place)) = place else {
                    assert!(
                        !model.ever_members(id).contains(user),
                        "place of {user} in {id}"
                    );
                    continue;
                };
                if place.member.is_present() {
                    assert_eq!(
                        place.copied_to, head.extra.copied_to,
                        "copied_to of {user} in {id}"
                    );
                }
                let first = place
                    .member
                    .intervals
                    .first()
                    .map_or(Seq::ZERO, |first| first.since);
                let pending: Vec<_> = (1..=head.last_seq.get())
                    .map(Seq::new)
                    .filter(|seq| *seq >= first && place.member.sees(*seq))
                    .collect();
                assert_eq!(pending, model.inbox(user, id), "inbox of {user} in {id}");
                for (device, stored) in &place.devices {
                    let pending: Vec<_> =
                        pending.iter().copied().filter(|seq| seq > stored).collect();
                    assert_eq!(
                        pending,
                        model.pending(user, id, device),
                        "pending of {user} in {id}"
                    );
                }
                let mut copied = Vec::new();
                for ((conversation, key), row) in &shelf.rows {
                    if let (
                        InboxKey::Copy {
                            user: owner, seq, ..
                        },
                        InboxRow::Copy(copy),
                    ) = (key, row)
                        && conversation == id
                        && owner == user
                    {
                        check_message(
                            &copy.message,
                            &model
                                .message(id, *seq)
                                .unwrap_or_else(|| panic!("a copy of {seq} in {id}")),
                        );
                        copied.push(*seq);
                    }
                }
                assert_eq!(copied, model.copied(user, id), "copies of {user} in {id}");
            }
        }
    }
}
