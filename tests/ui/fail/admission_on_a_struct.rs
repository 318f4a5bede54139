//! A struct does not answer.
use kctl::prelude::*;

#[admission(validate)]
struct Rules;

fn main() {}
