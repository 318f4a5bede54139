//! Status items are a slice, not a `Vec`.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = AggregateStatus)]
fn aggregate(_object: &mut Deployment, _items: Vec<AggregatedStatusItem>) -> Result<()> {
    Ok(())
}

fn main() {}
