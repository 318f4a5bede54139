//! One function answers one operation.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = [InterpretHealth, InterpretReplica])]
fn health(_pod: &Pod) -> Result<bool> {
    Ok(true)
}

fn main() {}
