//! The attribute can't add a type beside a method.
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
