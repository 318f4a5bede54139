//! An embedded Kubernetes API server: in-process, in memory, for tests and development.

pub mod crd;
pub mod schema;
