//! `#[interpreter]` does not stand on an `impl`.
use kctl::karmada::prelude::*;

struct Health;

#[interpreter(op = InterpretHealth)]
impl Health {}

fn main() {}
