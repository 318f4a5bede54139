//! No operation at all.
use kctl::prelude::*;

#[interpreter(op = Scale)]
fn replicas(_object: &Deployment) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
