//! A type without `#[conversion]` can't be registered.
use kctl::prelude::*;

#[allow(dead_code)]
struct Up;

fn main() {
    let _app = App::new("web").conversion::<Up>();
}
