//! A kind without status has none to aggregate.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = AggregateStatus)]
fn aggregate(_object: &mut ConfigMap, _items: &[AggregatedStatusItem]) -> Result<()> {
    Ok(())
}

fn main() {}
