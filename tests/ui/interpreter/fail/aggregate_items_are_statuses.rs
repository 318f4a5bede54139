//! An item of AggregateStatus has the status and the name of its cluster.
use kctl::{karmada::prelude::*, prelude::*};

#[resource(group = "example.com", version = "v1", kind = "Website", namespaced, status = "Ready")]
struct WebsiteSpec {}

#[schema]
struct Ready {
    replicas: Option<i32>,
}

#[interpreter(op = AggregateStatus)]
fn aggregate(_object: &mut Website, _items: &[Ready]) -> Result<()> {
    Ok(())
}

fn main() {}
