//! A type without `#[controller]` can't be registered.
use kctl::prelude::*;

struct Configs;

fn app() -> App {
    App::new("configs").controller::<Configs>()
}

fn main() {}
