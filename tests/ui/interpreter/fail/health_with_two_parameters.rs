//! InterpretHealth takes the object alone.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth)]
fn health(_object: &Deployment, _replicas: i32) -> Result<bool> {
    Ok(true)
}

fn main() {}
