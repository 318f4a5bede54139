//! CRDs that are generated from Rust types: their content, whether an API server accepts them, and breaking changes.

mod compat;
mod costs;
mod golden;
mod markers;
mod merging;
mod mistakes;
mod schemas;
mod scopes;
mod tables;
mod values;
