//! InterpretReplica returns `Replicas`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretReplica)]
fn replicas(_object: &Deployment) -> Result<String> {
    Ok("2".into())
}

fn main() {}
