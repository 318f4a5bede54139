//! Subresources of owned objects, and several rules from one function.
use kctl::{k8s::api::rbac::v1::PolicyRule, prelude::*};

fn rules() -> Vec<PolicyRule> {
    let rule = |resource: &str| PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec![resource.into()]),
        verbs: vec!["get".into()],
        ..PolicyRule::default()
    };
    vec![rule("pods/log"), rule("nodes")]
}

#[controller(owns = Pod(eviction, status), owns = Deployment(scale), rbac(rules()))]
pub(crate) async fn configs(_config: Arc<ConfigMap>, cx: Context<configs>) -> Result<Action> {
    let (pods, deployments) = (cx.owned::<Pod>(), cx.owned::<Deployment>());
    for pod in &pods {
        pods.patch_status(pod, kctl::json!({ "message": "leaves" })).await?;
        pods.evict(pod).await?;
    }
    for deployment in &deployments {
        deployments.scale(deployment, 0).await?;
    }
    Ok(Action::await_change())
}

pub(crate) fn app() -> App {
    App::new("subresources").controller::<configs>()
}
