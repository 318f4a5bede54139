//! The attribute can't add a type next to a method.
use kctl::prelude::*;

struct Rules;

impl Rules {
    #[admission(validate)]
    fn names(&self, _object: &ConfigMap) -> Result<()> {
        Ok(())
    }
}

fn main() {}
