//! A rejection needs a message, so the function returns `Result<()>`.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_object: &Deployment) -> bool {
    true
}

fn main() {}
