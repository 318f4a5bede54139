//! Operations have no wildcard: each has its own function.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = *)]
fn replicas(_object: &Deployment) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
