//! A match condition has a name of its own.
use kctl::prelude::*;

#[admission(validate, match_conditions("same" = "true", "same" = "1 < 2"))]
fn rules(_config: &ConfigMap) -> Result<()> {
    Ok(())
}

fn main() {}
