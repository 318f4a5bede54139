//! Operations are spelt as on the wire.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = interprethealth)]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
