//! An interpreter is for one kind, so its function has no type parameters.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth)]
fn health<K: ResourceExt>(_object: &K) -> Result<bool> {
    Ok(true)
}

fn main() {}
