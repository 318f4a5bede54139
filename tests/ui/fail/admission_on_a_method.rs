//! An admission function is a free function: nothing can be put beside a method.
use kctl::prelude::*;

struct Rules;

impl Rules {
    #[admission(validate)]
    fn names(&self, _object: &ConfigMap) -> Result<()> {
        Ok(())
    }
}

fn main() {}
