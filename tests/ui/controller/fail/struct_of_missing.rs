//! A controller struct needs `of = Kind`.
use kctl::prelude::*;

#[controller(owns = Pod)]
struct Configs;

fn main() {}
