//! The error of a conversion crosses threads.
use kctl::prelude::*;

mod v1alpha1 {
    use kctl::prelude::*;

    #[resource(group = "example.com", version = "v1alpha1", kind = "Web", namespaced, storage = false)]
    pub struct WebSpec {}
}

#[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
struct WebSpec {}

#[conversion]
fn up(old: v1alpha1::Web) -> Result<Web, Box<dyn std::error::Error>> {
    Ok(Web { metadata: old.metadata, spec: WebSpec {} })
}

fn main() {}
