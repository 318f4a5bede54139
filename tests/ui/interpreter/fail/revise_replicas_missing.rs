//! ReviseReplica takes the object and the replicas.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = ReviseReplica)]
fn revise(_object: &mut Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
