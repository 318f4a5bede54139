//! Objects have one name for a field, so it is read and written by the same name.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[serde(rename(serialize = "total", deserialize = "sum"))]
    pub count: i32,
}

fn main() {}
