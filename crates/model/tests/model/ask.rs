//! One question a function, about `g1` unless told otherwise, in plain numbers.

use tidemark_event::{Seq, UserId};
use tidemark_model::{
    Message, Model, Session, Settings, Verdict,
    story::{Told, conversation, device, story, user},
};

/// No seqs.
pub(crate) const NONE: [u64; 0] = [];

/// The model of a story.
pub(crate) fn after(told: impl IntoIterator<Item = Told>) -> Model {
    Model::of(&story(told), &Settings::default())
}

/// The model of each longer beginning of a story, from its first event to all of it.
pub(crate) fn after_each(told: impl IntoIterator<Item = Told>) -> Vec<Model> {
    let log = story(told);
    (1..=log.len())
        .map(|len| Model::of(&log[..len], &Settings::default()))
        .collect()
}

/// What became of each record.
pub(crate) fn verdicts(told: impl IntoIterator<Item = Told>, settings: &Settings) -> Vec<Verdict> {
    let model = Model::of(&story(told), settings);
    model.verdicts().map(|(_, verdict)| verdict).collect()
}

/// What became of the last record.
#[track_caller]
pub(crate) fn verdict(told: impl IntoIterator<Item = Told>) -> Verdict {
    let verdicts = verdicts(told, &Settings::default());
    *verdicts
        .last()
        .unwrap_or_else(|| panic!("a story has events"))
}

#[track_caller]
pub(crate) fn session(model: &Model, name: &str) -> Session {
    session_in(model, name, "g1")
}

#[track_caller]
pub(crate) fn session_in(model: &Model, name: &str, place: &str) -> Session {
    let session = model.session(&user(name), &conversation(place));
    session.unwrap_or_else(|| panic!("{name} has no session in {place}"))
}

#[track_caller]
pub(crate) fn unread(model: &Model, name: &str) -> u64 {
    session(model, name).unread
}

#[track_caller]
pub(crate) fn mentions(model: &Model, name: &str) -> Vec<u64> {
    numbers(session(model, name).unread_mentions)
}

#[track_caller]
pub(crate) fn message(model: &Model, seq: u64) -> Message {
    let message = model.message(&conversation("g1"), Seq::new(seq));
    message.unwrap_or_else(|| panic!("there is no message {seq}"))
}

pub(crate) fn visible(model: &Model, name: &str) -> Vec<u64> {
    numbers(model.history_visible(&user(name), &conversation("g1")))
}

pub(crate) fn inbox(model: &Model, name: &str) -> Vec<u64> {
    numbers(model.inbox(&user(name), &conversation("g1")))
}

pub(crate) fn pending(model: &Model, name: &str, device_name: &str) -> Vec<u64> {
    numbers(model.pending(&user(name), &conversation("g1"), &device(device_name)))
}

pub(crate) fn copied(model: &Model, name: &str) -> Vec<u64> {
    numbers(model.copied(&user(name), &conversation("g1")))
}

pub(crate) fn members(model: &Model) -> Vec<(String, u64)> {
    let members = model.members(&conversation("g1")).into_iter();
    members
        .map(|(user, since): (UserId, Seq)| (user.to_string(), since.get()))
        .collect()
}

fn numbers(seqs: Vec<Seq>) -> Vec<u64> {
    seqs.into_iter().map(Seq::get).collect()
}
