//! InterpretHealth returns a `bool`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth)]
fn health(_object: &Deployment) {}

fn main() {}
