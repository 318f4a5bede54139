//! `operations` takes a list in parentheses.
use kctl::prelude::*;

#[admission(validate, operations = create)]
fn rules(_object: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
