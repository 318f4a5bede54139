//! The help names the status type that the kind has in the same file.
use kctl::{karmada::prelude::*, prelude::*};

#[resource(group = "example.com", version = "v1", kind = "Site", status = "SiteState")]
pub struct SiteSpec {
    pub host: String,
}

#[schema]
pub struct SiteState {
    pub ready: bool,
}

#[interpreter(op = InterpretStatus)]
fn status(object: &Site) -> Result<Site> {
    Ok(object.clone())
}

fn main() {}
