//! The function's parameter names the kind.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth)]
fn health() -> Result<bool> {
    Ok(true)
}

fn main() {}
