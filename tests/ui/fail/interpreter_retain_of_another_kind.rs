//! The observed object is of the same kind.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = Retain)]
fn retain(_desired: &mut Deployment, _observed: &StatefulSet) -> Result<()> {
    Ok(())
}

fn main() {}
