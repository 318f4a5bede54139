//! The object is borrowed, not an `Arc`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = InterpretReplica)]
fn replicas(_object: Arc<Deployment>) -> Result<Replicas> {
    Ok(Replicas::default())
}

fn main() {}
