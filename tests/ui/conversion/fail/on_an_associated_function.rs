//! The attribute can't add a type next to an associated function.
use kctl::prelude::*;

struct Rules;

impl Rules {
    #[conversion]
    fn convert(_old: ConfigMap) -> Result<Secret> {
        Ok(Secret::default())
    }
}

fn main() {}
