//! A struct does not convert.
use kctl::prelude::*;

#[conversion]
struct Up;

fn main() {}
