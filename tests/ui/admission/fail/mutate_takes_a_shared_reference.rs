//! A mutating function needs `&mut Kind`.
use kctl::prelude::*;

#[admission(mutate)]
fn defaults(_object: &Deployment) {}

fn main() {}
