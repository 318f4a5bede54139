//! The attribute goes on a function.
use kctl::karmada::prelude::*;

#[interpreter(op = InterpretHealth)]
struct Health;

fn main() {}
