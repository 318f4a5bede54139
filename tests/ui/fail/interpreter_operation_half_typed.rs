//! The operation is not typed yet.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = )]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
