//! What a request says: who makes it, its path, its query, its body.
//!
//! Everything that a call does not know is refused by name, so that a misspelt parameter is not taken for absent; and
//! all that is wrong with a query is told at once. What is said here is only whether a request can be meant; whether
//! it may be done is judged later, by what the views hold.

mod body;
mod caller;
mod path;
mod query;

pub(crate) use body::{Body, Lines};
pub(crate) use caller::{Caller, Service};
pub(crate) use path::{InConversation, InMessage};
pub(crate) use query::{FromParams, Params, Query};
