//! One function for two operations.
use kctl::prelude::*;

#[interpreter(op = [InterpretHealth, InterpretReplica])]
fn health(_pod: &Pod) -> Result<bool> {
    Ok(true)
}

fn main() {}
