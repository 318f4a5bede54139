//! A conversion is a free function: nothing can be put beside a method.
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
