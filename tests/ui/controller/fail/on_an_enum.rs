//! The attribute must be applied to a function or a struct.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
pub enum Configs {
    One,
}

fn main() {}
