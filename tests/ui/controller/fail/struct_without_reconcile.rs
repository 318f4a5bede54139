//! A controller struct needs `impl Reconcile`.
use kctl::prelude::*;

#[controller(of = ConfigMap)]
struct Configs;

fn main() {}
