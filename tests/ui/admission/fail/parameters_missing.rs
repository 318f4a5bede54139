//! The function's parameter names the kind.
use kctl::prelude::*;

#[admission(validate)]
fn rules() -> Result<()> {
    Ok(())
}

fn main() {}
