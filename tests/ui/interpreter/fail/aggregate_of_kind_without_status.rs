//! AggregateStatus needs a kind with a status.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = AggregateStatus)]
fn aggregate(_object: &mut ConfigMap, _items: &[AggregatedStatusItem]) -> Result<()> {
    Ok(())
}

fn main() {}
