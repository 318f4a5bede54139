//! Operations are spelled as Karmada spells them.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = interprethealth)]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
