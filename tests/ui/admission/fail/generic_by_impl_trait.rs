//! `impl Trait` is a type parameter, too.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_object: &impl ResourceExt) -> Result<()> {
    Ok(())
}

fn main() {}
