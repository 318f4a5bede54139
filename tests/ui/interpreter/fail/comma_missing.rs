//! Options are separated by commas.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth crate = kctl)]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
