//! `rbac(…, on = Edge)` gives no client of `West`.
use kctl::{k8s::api::rbac::v1::PolicyRule, prelude::*};

pub struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

pub struct West;
impl Cluster for West {
    const NAME: &'static str = "west";
}

#[controller(rbac(PolicyRule::default(), on = Edge))]
async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let _west = cx.cluster(West).client();
    Ok(Action::await_change())
}

fn main() {}
