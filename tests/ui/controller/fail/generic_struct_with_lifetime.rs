//! A controller struct owns its fields.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
struct Configs<'a> {
    name: &'a str,
}

fn main() {}
