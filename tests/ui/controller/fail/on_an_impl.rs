//! The attribute goes on the struct, not on its `impl`.
use kctl::prelude::*;

pub struct Configs;

#[controller(of = ConfigMap)]
impl Configs {
    pub fn new() -> Self {
        Self
    }
}

fn main() {}
