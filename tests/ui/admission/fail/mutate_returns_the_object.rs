//! A mutating function changes the object in place and returns nothing.
use kctl::prelude::*;

#[admission(mutate)]
fn defaults(object: &mut Deployment) -> Result<Deployment> {
    Ok(object.clone())
}

fn main() {}
