//! `mutating = true` is the marker of kubebuilder.
use kctl::prelude::*;

#[admission(mutating = true)]
fn defaults(_object: &mut Deployment) {}

fn main() {}
