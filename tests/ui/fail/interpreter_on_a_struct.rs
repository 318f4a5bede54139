//! `#[interpreter]` stands on a function.
use kctl::prelude::*;

#[interpreter(op = InterpretHealth)]
struct Health;

fn main() {}
