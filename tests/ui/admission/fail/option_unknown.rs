//! The path follows from the kind; `path` is not an option.
use kctl::prelude::*;

#[admission(validate, path = "/rules")]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
