//! `crate` takes a path, not a string.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth, crate = "kctl")]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
