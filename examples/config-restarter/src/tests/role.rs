//! Tests that the generated role contains exactly the permissions that the operator needs.

use kctl::{
    App,
    kube::{
        Api,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
    testing::Trial,
};

use super::{FlakyRegistry, config, web};
use crate::{controller::ConfigRestarter, policy::RestartPolicy};

fn app() -> App {
    crate::app(Arc::new(FlakyRegistry::default()))
}

/// Exercises every write: pods are created, replaced, and deleted with their policy, which has a finalizer.
async fn exercise_all_permissions(trial: &Trial) -> Result<()> {
    let configs = Api::<ConfigMap>::default_namespaced(trial.client());
    let policies = Api::<RestartPolicy>::default_namespaced(trial.client());
    let mut config = config("web-config", "hello");
    config.metadata.namespace = None;
    configs.create(&PostParams::default(), &config).await?;
    let mut policy = web(1);
    policy.metadata.namespace = None;
    policy.spec.template.spec.get_or_insert_default().termination_grace_period_seconds = Some(1);
    policies.create(&PostParams::default(), &policy).await?;
    trial.idle().await?;
    let other = Patch::Merge(kctl::json!({ "data": { "GREETING": "good morning" } }));
    configs.patch("web-config", &PatchParams::default(), &other).await?;
    trial.idle().await?;
    policies.delete("web", &DeleteParams::default()).await?;
    trial.idle().await
}

kctl::role_tests!(app, exercise_all_permissions);
kctl::permissions_test!(ConfigRestarter; owns Pod, uses ConfigMap);
