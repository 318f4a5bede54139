//! The attribute is applied to the struct, not to its `impl`.
use kctl::prelude::*;

pub struct Configs;

#[controller(of = ConfigMap)]
impl Configs {
    pub fn new() -> Self {
        Self
    }
}

fn main() {}
