//! A schema that is left out has no type.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(schemaless, type_ = "string")]
    pub name: kctl::Json,
}

fn main() {}
