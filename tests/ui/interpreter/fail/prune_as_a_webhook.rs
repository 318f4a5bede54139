//! Karmada calls no webhook for Prune.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = Prune)]
fn prune(object: &mut Deployment) -> Result<()> {
    object.metadata.finalizers = None;
    Ok(())
}

fn main() {
    let _app = App::new("app").interpreter::<prune>();
}
