//! Options stand between commas.
use kctl::prelude::*;

#[interpreter(op = InterpretHealth crate = kctl)]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
