//! An option that there is not.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth, timeout = "3s")]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
