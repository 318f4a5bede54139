//! Retaining takes two objects.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = Retain)]
fn retain(_desired: &mut Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
