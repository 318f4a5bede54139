//! A type without `#[admission]` can't be registered.
use kctl::prelude::*;

#[allow(dead_code)]
struct Rules;

fn main() {
    let _app = App::new("web").admission::<Rules>();
}
