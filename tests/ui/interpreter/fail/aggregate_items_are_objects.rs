//! A cluster reports the status of its object, not the object.
use kctl::{karmada::prelude::*, prelude::*};

#[interpreter(op = AggregateStatus)]
fn aggregate(_object: &mut Deployment, _items: &[ClusterStatus<Deployment>]) -> Result<()> {
    Ok(())
}

fn main() {}
