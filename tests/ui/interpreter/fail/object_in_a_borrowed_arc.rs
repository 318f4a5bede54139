//! The reference is to the object, not to an `Arc`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretHealth)]
fn health(_object: &Arc<Deployment>) -> bool {
    true
}

fn main() {}
