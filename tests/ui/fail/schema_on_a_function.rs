//! Only types are parts of a kind.
use kctl::prelude::*;

#[schema]
pub fn status() {}

fn main() {}
