//! The object is a reference; the help names its kind alone.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_object: Option<&Deployment>) -> Result<()> {
    Ok(())
}

fn main() {}
