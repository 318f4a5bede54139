//! A struct says what it reconciles.
use kctl::prelude::*;

#[controller(owns = Pod)]
struct Configs;

fn main() {}
