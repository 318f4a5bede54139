//! The name of a match condition is a qualified name.
use kctl::prelude::*;

#[admission(validate, match_conditions("not system" = "true"))]
fn rules(_config: &ConfigMap) -> Result<()> {
    Ok(())
}

fn main() {}
