//! About which kind?
use kctl::prelude::*;

#[admission(validate)]
fn rules() -> Result<()> {
    Ok(())
}

fn main() {}
