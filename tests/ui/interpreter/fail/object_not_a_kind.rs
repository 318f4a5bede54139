//! The parameter is a Kubernetes kind.
use kctl::{karmada::prelude::*, prelude::*};

#[schema]
struct Widget {
    size: i32,
}

#[interpreter(op = InterpretHealth)]
fn health(_widget: &Widget) -> Result<bool> {
    Ok(true)
}

fn main() {}
