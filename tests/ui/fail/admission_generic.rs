//! A webhook is for one kind.
use kctl::prelude::*;

#[admission(validate)]
fn rules<K>(_object: &K) -> Result<()> {
    Ok(())
}

fn main() {}
