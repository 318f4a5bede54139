//! The default is not in `allowed(…)`.
use kctl::prelude::*;

#[schema]
pub struct Part {
    #[kctl(allowed("a", "b"), default = "c")]
    pub name: String,
}

fn main() {}
