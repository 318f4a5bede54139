//! An enum is no controller.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
pub enum Configs {
    One,
}

fn main() {}
