//! The type of status items implements `Deserialize`.
use kctl::{karmada::prelude::*, prelude::*};

struct Item;

#[interpreter(op = AggregateStatus)]
fn aggregate(_object: &mut Deployment, _items: &[Item]) -> Result<()> {
    Ok(())
}

fn main() {}
