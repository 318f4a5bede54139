//! InterpretComponent returns a `Vec`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretComponent)]
fn components(_object: &Deployment) -> Result<Component> {
    Ok(Component::default())
}

fn main() {}
