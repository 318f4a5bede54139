//! Fields are named in quotes, as in JSON.
use kctl::prelude::*;

#[schema]
#[kctl(exactly_one_of(secret, file))]
pub struct Source {
    pub secret: Option<String>,
    pub file: Option<String>,
}

fn main() {}
