//! A controller reconciles.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
struct Configs;

fn main() {}
