//! The object is borrowed, not moved.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretReplica)]
fn replicas(_object: Deployment) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
