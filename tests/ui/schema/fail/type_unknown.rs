//! `text` is not a type of JSON schema.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(type_ = "text")]
    pub name: String,
}

fn main() {}
