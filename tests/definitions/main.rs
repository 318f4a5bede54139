//! Definitions that are made from types: what they say, whether an API server takes them, and what a change breaks.

mod compat;
mod costs;
mod golden;
mod markers;
mod merging;
mod mistakes;
mod schemas;
mod scopes;
mod values;
