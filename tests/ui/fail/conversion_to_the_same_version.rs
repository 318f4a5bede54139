//! There is nothing to convert.
use kctl::prelude::*;

#[conversion]
fn up(old: Deployment) -> Result<Deployment> {
    Ok(old)
}

fn main() {}
