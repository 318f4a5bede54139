//! `op` is misspelt.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(opp = InterpretHealth)]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
