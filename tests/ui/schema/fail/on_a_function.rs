//! The attribute goes on a struct or an enum.
use kctl::prelude::*;

#[schema]
pub fn status() {}

fn main() {}
