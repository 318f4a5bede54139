//! InterpretReplica only reads its object.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretReplica)]
fn replicas(_object: &mut Deployment) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
