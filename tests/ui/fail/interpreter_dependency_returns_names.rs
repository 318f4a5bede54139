//! Dependencies are references.
use kctl::prelude::*;

#[interpreter(op = InterpretDependency)]
fn dependencies(_object: &Deployment) -> Result<Vec<String>> {
    Ok(vec!["config".into()])
}

fn main() {}
