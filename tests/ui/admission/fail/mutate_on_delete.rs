//! A delete has no object that a function could mutate.
use kctl::prelude::*;

#[admission(mutate, operations(create, delete))]
fn defaults(_object: &mut Deployment) {}

fn main() {}
