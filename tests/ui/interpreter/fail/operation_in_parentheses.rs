//! The operation comes after an equals sign.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op(InterpretHealth))]
fn health(_object: &Deployment) -> bool {
    true
}

fn main() {}
