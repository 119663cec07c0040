//! What stops a partition, a view or a worker for good: each says why, and nothing is skipped.
//!
//! Every test has a town of its own, which it leaves broken. They are the last ones by name, and so by order: each ends
//! the town that the others use.

mod log_faults;
mod schemas;
mod stable_names;
