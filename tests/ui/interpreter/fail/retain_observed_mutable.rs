//! Retain only reads the observed object.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = Retain)]
fn retain(_desired: &mut Deployment, _observed: &mut Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
