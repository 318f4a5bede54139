//! The attribute must be applied to a struct or an enum.
use kctl::prelude::*;

#[schema]
pub fn status() {}

fn main() {}
