//! Karmada's replicas are an `i32`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = ReviseReplica)]
fn revise(_object: &mut Deployment, _replicas: i64) -> Result<()> {
    Ok(())
}

fn main() {}
