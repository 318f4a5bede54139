//! `op` is given once.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth, op = InterpretStatus)]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
