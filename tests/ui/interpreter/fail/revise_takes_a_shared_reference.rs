//! ReviseReplica changes its object, so it is `&mut`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = ReviseReplica)]
fn revise(_object: &Deployment, _replicas: i32) -> Result<()> {
    Ok(())
}

fn main() {}
