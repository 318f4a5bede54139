//! `#[schema]` has no option but `crate`.
use kctl::prelude::*;

#[schema(rename_all = "camelCase")]
pub struct Status {
    pub ready: i32,
}

fn main() {}
