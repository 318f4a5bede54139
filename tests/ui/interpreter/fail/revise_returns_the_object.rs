//! ReviseReplica changes the object in place and returns nothing.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = ReviseReplica)]
fn revise(object: &mut Deployment, replicas: i32) -> Result<Deployment> {
    object.spec.replicas = Some(replicas);
    Ok(object.clone())
}

fn main() {}
