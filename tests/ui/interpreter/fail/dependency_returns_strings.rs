//! InterpretDependency returns `DependentReference`s, not names.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretDependency)]
fn dependencies(_object: &Deployment) -> Result<Vec<String>> {
    Ok(vec!["config".into()])
}

fn main() {}
