//! The result of an `async` function is shown at its type, too.
use kctl::prelude::*;

#[admission(validate)]
async fn rules(_object: &Deployment) -> bool {
    true
}

fn main() {}
