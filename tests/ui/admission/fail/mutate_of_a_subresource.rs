//! The object of a `scale` is a `Scale`, which a function for the kind can't change.
use kctl::prelude::*;

#[admission(mutate, subresources(scale))]
fn defaults(_deployment: &mut Deployment) {}

fn main() {}
