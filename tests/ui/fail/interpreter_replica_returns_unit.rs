//! The number of replicas is returned.
use kctl::prelude::*;

#[interpreter(op = InterpretReplica)]
fn replicas(_object: &Deployment) -> () {}

fn main() {}
