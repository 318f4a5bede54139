//! Who reads an object does not change it.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretReplica)]
fn replicas(_object: &mut Deployment) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
