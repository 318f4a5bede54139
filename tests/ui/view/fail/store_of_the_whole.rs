//! A kind that is read as a view has no cache of whole objects.
use kctl::prelude::*;

#[view(of = Pod)]
struct Placed {
    #[view(spec.node_name)]
    node: Option<String>,
}

#[controller(reads = Pod(as = Placed))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    println!("{}", cx.store::<Pod>().len());
    Ok(Action::await_change())
}

fn main() {}
