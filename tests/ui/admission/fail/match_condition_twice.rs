//! Match conditions have different names.
use kctl::prelude::*;

#[admission(validate, match_conditions("same" = "true", "same" = "1 < 2"))]
fn rules(_config: &ConfigMap) -> Result<()> {
    Ok(())
}

fn main() {}
