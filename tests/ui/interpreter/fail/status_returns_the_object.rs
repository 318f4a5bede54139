//! InterpretStatus returns the status, which is a part of the object.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretStatus)]
fn status(object: &Deployment) -> Result<Deployment> {
    Ok(object.clone())
}

fn main() {}
