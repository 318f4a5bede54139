//! A type without `#[interpreter]` can't be registered.
use kctl::prelude::*;

struct Health;

fn main() {
    let _app = App::new("app").interpreter::<Health>();
}
