//! A revision has a number of replicas.
use kctl::prelude::*;

#[interpreter(op = ReviseReplica)]
fn revise(_object: &mut Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
