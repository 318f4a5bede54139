//! An interpreter takes its object.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth)]
fn health() -> Result<bool> {
    Ok(true)
}

fn main() {}
