//! Two fields of one name in JSON would be one field.
use kctl::prelude::*;

#[schema]
pub struct Part {
    pub foo_bar: i32,
    #[serde(rename = "fooBar")]
    pub other: i32,
}

fn main() {}
