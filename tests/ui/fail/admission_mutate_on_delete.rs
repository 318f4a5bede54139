//! What goes is not changed.
use kctl::prelude::*;

#[admission(mutate, operations(create, delete))]
fn defaults(_object: &mut Deployment) {}

fn main() {}
