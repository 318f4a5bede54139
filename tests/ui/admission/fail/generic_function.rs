//! A webhook is for one kind, so its function has no type parameters.
use kctl::prelude::*;

#[admission(validate)]
fn rules<K>(_object: &K) -> Result<()> {
    Ok(())
}

fn main() {}
