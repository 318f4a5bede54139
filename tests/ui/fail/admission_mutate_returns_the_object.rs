//! The object is changed in its place.
use kctl::prelude::*;

#[admission(mutate)]
fn defaults(object: &mut Deployment) -> Result<Deployment> {
    Ok(object.clone())
}

fn main() {}
