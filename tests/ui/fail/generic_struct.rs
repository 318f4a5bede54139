//! A controller is one type.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
struct Configs<T> {
    state: T,
}

fn main() {}
