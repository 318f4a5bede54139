//! `InterpretReplica` is misspelt.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretReplicas)]
fn replicas(_object: &Deployment) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
