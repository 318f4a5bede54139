//! A conversion is between two versions.
use kctl::prelude::*;

#[conversion]
fn up(old: Deployment) -> Result<Deployment> {
    Ok(old)
}

fn main() {}
