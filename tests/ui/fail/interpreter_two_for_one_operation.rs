//! One function answers for an operation on a kind.
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
