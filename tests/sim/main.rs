//! The simulator: it finds what is wrong, and the examples survive it.

mod examples;
mod finds;
