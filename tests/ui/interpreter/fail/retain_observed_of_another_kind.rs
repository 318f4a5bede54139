//! Desired and observed object are of one kind.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = Retain)]
fn retain(_desired: &mut Deployment, _observed: &StatefulSet) -> Result<()> {
    Ok(())
}

fn main() {}
