//! A `status` is updated with its object, and never deleted alone.
use kctl::prelude::*;

#[admission(validate, operations(update, delete), subresources(status))]
fn rules(_website: &Deployment) {}

fn main() {}
