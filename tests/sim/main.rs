//! The simulator finds bugs in controllers, and the examples pass.

mod checkers;
mod examples;
mod finds;
mod stuck;
mod timed;
mod workloads;
