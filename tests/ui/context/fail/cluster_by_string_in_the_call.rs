//! `cx.cluster` takes a value of a `Cluster` type, not a string.
//!
//! Two errors: rustc reports the argument, and the method that is called on what `cx.cluster` would have returned.
use kctl::prelude::*;

#[controller(reads = Pod(on = "edge"))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    println!("{}", cx.cluster("edge").store::<Pod>().len());
    Ok(Action::await_change())
}

fn main() {}
