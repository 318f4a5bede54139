//! Kinds of `apps`.
//! The workloads share the validation of selector, template and strategy (`validation`), and of the numbers in a status
//! (`crate::validation::status`). Simulated controllers run them.

pub(crate) mod controller_revision;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
pub(crate) mod replica_set;
pub(crate) mod stateful_set;
pub(crate) mod validation;
