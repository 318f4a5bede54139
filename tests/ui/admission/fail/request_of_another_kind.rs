//! `Admission` has the kind of the object.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_object: &Deployment, _request: &Admission<Pod>) -> Result<()> {
    Ok(())
}

fn main() {}
