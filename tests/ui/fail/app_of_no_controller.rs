//! Only controllers are run.
use kctl::prelude::*;

struct Configs;

fn app() -> App {
    App::new("configs").controller::<Configs>()
}

fn main() {}
