//! It could not change anything.
use kctl::prelude::*;

#[admission(mutate)]
fn defaults(_object: &Deployment) {}

fn main() {}
