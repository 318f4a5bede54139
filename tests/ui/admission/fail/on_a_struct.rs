//! The attribute goes on a function.
use kctl::prelude::*;

#[admission(validate)]
struct Rules;

fn main() {}
