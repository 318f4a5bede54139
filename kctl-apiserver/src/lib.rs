//! An embedded Kubernetes API server: in-process, in memory, for tests and development.

pub mod schema;
pub mod table;
