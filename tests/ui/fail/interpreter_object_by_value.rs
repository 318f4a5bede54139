//! The object is borrowed.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretReplica)]
fn replicas(_object: Deployment) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
