//! InterpretHealth returns a `bool`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth)]
fn health(_object: &Deployment) -> i32 {
    1
}

fn main() {}
