//! The simulator: it finds what is wrong, and the examples survive it.

mod checkers;
mod examples;
mod finds;
mod timed;
mod workloads;
