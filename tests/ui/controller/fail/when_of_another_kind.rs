//! `when` takes a function of the relation's kind.
use kctl::prelude::*;

fn always(_change: &Change<Secret>) -> bool {
    true
}

#[controller(owns = Pod(when = always))]
async fn configs(_config: Arc<ConfigMap>, _cx: Context<configs>) -> Result<Action> {
    Ok(Action::await_change())
}

fn main() {}
