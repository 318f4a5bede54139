//! `validate` is misspelt.
use kctl::prelude::*;

#[admission(valdate)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
