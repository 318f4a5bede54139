//! The error of a function crosses threads.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth)]
fn health(_object: &Deployment) -> Result<bool, Box<dyn std::error::Error>> {
    Ok(true)
}

fn main() {}
