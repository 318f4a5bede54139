//! A refusal has a reason.
use kctl::prelude::*;

#[admission(validate)]
fn rules(_object: &Deployment) -> bool {
    true
}

fn main() {}
