//! An interpreter takes its object.
use kctl::prelude::*;

#[interpreter(op = InterpretHealth)]
fn health() -> Result<bool> {
    Ok(true)
}

fn main() {}
