//! `rbac(…, on = Edge)` gives no client of the primary's cluster.
use kctl::{k8s::api::rbac::v1::PolicyRule, prelude::*};

pub struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

#[controller(rbac(PolicyRule::default(), on = Edge))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _own = cx.client();
    Ok(Action::await_change())
}

fn main() {}
