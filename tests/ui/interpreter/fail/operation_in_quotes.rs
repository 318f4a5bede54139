//! Operations are words, not strings.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = "InterpretHealth")]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
