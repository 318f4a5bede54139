//! An embedded Kubernetes API server: in-process, in memory, for tests and development.

pub mod admit;
pub mod patch;
pub mod schema;
