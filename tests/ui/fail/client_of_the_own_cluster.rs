//! Rules for another cluster don't hold on the one of the primary.
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
