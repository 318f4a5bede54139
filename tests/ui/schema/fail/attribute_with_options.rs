//! `#[schema]` has no options.
use kctl::prelude::*;

#[schema(rename_all = "camelCase")]
pub struct Status {
    pub ready: i32,
}

fn main() {}
