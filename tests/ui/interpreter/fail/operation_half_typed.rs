//! The function's name still resolves while the attribute is being typed.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = )]
fn health(_object: &Deployment) -> Result<bool> {
    Ok(true)
}

fn main() {}
