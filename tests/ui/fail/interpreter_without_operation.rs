//! An interpreter needs its operation.
use kctl::prelude::*;

#[interpreter]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
