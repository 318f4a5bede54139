//! The operation is the value of `op`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(InterpretHealth)]
fn health(_object: &Deployment) -> bool {
    true
}

fn main() {}
