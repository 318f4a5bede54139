//! `timeout` is not an option.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth, timeout = "3s")]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
