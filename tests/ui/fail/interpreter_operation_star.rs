//! Every operation at once: each has a function of its own.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = *)]
fn replicas(_object: &Deployment) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
