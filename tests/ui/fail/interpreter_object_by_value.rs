//! The object is borrowed.
use kctl::prelude::*;

#[interpreter(op = InterpretReplica)]
fn replicas(_object: Deployment) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
