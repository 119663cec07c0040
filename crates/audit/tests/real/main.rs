//! The audit against a real Kafka and a real CQL server.
//!
//! Needs TIDEMARK_KAFKA and TIDEMARK_CQL, servers whose data nobody minds: the log's topic is deleted and made anew, so
//! one test at a time uses a Kafka. `deploy/dev/with-servers cargo test -p tidemark-audit --test real -- --ignored
//! --test-threads 1`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod audits;
mod log;
mod worker;
