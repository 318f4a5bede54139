//! A field is written by the name by which it is read, because the CRD has one name.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[serde(rename(serialize = "total", deserialize = "sum"))]
    pub count: i32,
}

fn main() {}
