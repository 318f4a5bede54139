//! The attribute can't add a type next to a method.
use kctl::prelude::*;

struct Up;

impl Up {
    #[conversion]
    fn convert(&self, old: ConfigMap) -> Result<Secret> {
        drop(old);
        Ok(Secret::default())
    }
}

fn main() {}
