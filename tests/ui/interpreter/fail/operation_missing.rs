//! The attribute needs `op`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
