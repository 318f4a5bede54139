//! All mistakes are reported at once, one error for each.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = ReviseReplica, timeout = "3s")]
fn revise(_object: &Deployment, _replicas: u32) -> Result<()> {
    Ok(())
}

fn main() {
    let _app = App::new("app").interpreter::<revise>();
}
