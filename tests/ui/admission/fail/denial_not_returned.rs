//! A rejection that is not returned accepts the request.
#![deny(unused_must_use)]
use kctl::prelude::*;

#[admission(validate)]
fn rules(deployment: &Deployment) -> Result<()> {
    if deployment.spec.paused == Some(true) {
        Denial::because("no pauses");
    }
    Ok(())
}

fn main() {}
