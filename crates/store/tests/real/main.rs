//! The store against a real CQL server: what is written is what is read, older writers lose, copies expire, and nothing
//! a server would warn of is sent.
//!
//! Needs TIDEMARK_CQL, contact points of a server whose data nobody minds. Tests that need a keyspace to themselves drop
//! it at their end; the others share one, which is left behind.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod double;
mod fold;
mod operators;
mod rows;
mod world;
