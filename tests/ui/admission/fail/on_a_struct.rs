//! The attribute must be applied to a function.
use kctl::prelude::*;

#[admission(validate)]
struct Rules;

fn main() {}
