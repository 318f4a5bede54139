//! A conversion returns the object in the other version.
use kctl::prelude::*;

#[conversion]
fn up(_old: Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
