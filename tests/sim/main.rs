//! The simulator finds bugs in controllers, and the examples pass.

mod checkers;
mod examples;
mod fresh_start;
mod reports;
mod stuck;
mod timed;
mod workloads;
