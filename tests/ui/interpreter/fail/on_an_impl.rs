//! The attribute must be applied to a function.
use kctl::karmada::prelude::*;

struct Health;

#[interpreter(op = InterpretHealth)]
impl Health {}

fn main() {}
