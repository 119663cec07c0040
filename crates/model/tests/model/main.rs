//! The model told in stories: a test per rule of `docs/rules.md` and per row of the scenarios that is about events.

mod ask;
mod generator;
mod inbox;
mod limits;
mod membership;
mod mentions;
mod sessions;
mod unread;
mod verdicts;
