//! Karmada has no operation `Scale`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = Scale)]
fn replicas(_object: &Deployment) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
