//! An option that is almost one.
use kctl::prelude::*;

#[interpreter(opp = InterpretHealth)]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
