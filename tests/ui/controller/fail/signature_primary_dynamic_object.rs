//! `DynamicObject` names no kind that could be reconciled.
use kctl::{kube::core::DynamicObject, prelude::*};

#[controller]
async fn anything(_object: Arc<DynamicObject>, _cx: Context<anything>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
