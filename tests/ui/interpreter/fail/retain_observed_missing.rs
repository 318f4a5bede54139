//! Retain takes the desired and the observed object.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = Retain)]
fn retain(_desired: &mut Deployment) -> Result<()> {
    Ok(())
}

fn main() {}
