//! Operations are in parentheses; the words alone are one mistake.
use kctl::prelude::*;

#[admission(validate, create, update)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
