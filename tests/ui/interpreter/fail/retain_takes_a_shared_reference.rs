//! Retain changes the desired object, so it is `&mut`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = Retain)]
fn retain(_desired: &Deployment, _observed: &Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
