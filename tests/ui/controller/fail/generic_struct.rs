//! A controller struct has no type parameters.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
struct Configs<T> {
    state: T,
}

fn main() {}
