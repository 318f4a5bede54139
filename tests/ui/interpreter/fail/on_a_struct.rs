//! The attribute must be applied to a function.
use kctl::karmada::prelude::*;

#[interpreter(op = InterpretHealth)]
struct Health;

fn main() {}
