//! Health is a `bool`.
use kctl::prelude::*;

#[interpreter(op = InterpretHealth)]
fn health(_object: &Deployment) {}

fn main() {}
