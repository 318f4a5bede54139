//! Status items are a slice: one for each cluster.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = AggregateStatus)]
fn aggregate(_object: &mut Deployment, _item: &AggregatedStatusItem) -> Result<()> {
    Ok(())
}

fn main() {}
