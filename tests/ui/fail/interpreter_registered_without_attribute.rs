//! Only functions with the attribute can be registered.
use kctl::prelude::*;

struct Health;

fn main() {
    let _app = App::new("app").interpreter::<Health>();
}
