//! The object is borrowed, not moved.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_object: Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
