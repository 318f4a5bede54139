//! The attribute can't add a type next to an associated function.
use kctl::prelude::*;

struct Rules;

impl Rules {
    #[admission(validate)]
    fn names(_object: &ConfigMap) -> Result<()> {
        Ok(())
    }
}

fn main() {}
