//! Two functions answer the same operation on one kind.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth)]
fn healthy(_object: &Deployment) -> bool {
    true
}

#[interpreter(op = InterpretHealth)]
fn well(_object: &Deployment) -> bool {
    true
}

fn main() {}
