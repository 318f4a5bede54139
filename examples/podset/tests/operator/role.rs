//! Tests that the generated role contains exactly the permissions that the operator needs.

use kctl::{
    kube::{
        Api,
        api::{ListParams, Patch, PatchParams, PostParams},
    },
    prelude::*,
    testing::Trial,
};
use podset::PodSet;

/// Exercises every write: pods are created, deleted, adopted and released.
async fn exercise_all_permissions(trial: &Trial) -> Result<()> {
    let (sets, pods) =
        (Api::<PodSet>::default_namespaced(trial.client()), Api::<Pod>::default_namespaced(trial.client()));
    let mut web: PodSet = kctl::from_yaml(include_str!("../../web.yaml"))?;
    web.metadata.namespace = None;
    web.spec.template.spec.get_or_insert_default().termination_grace_period_seconds = Some(1);
    sets.create(&PostParams::default(), &web).await?;
    trial.idle().await?;
    let own = pods.list(&ListParams::default()).await?.items;
    assert_eq!(own.len(), 3);

    let label = Patch::Merge(kctl::json!({ "metadata": { "labels": { "app": "other" } } }));
    pods.patch(&own[0].name_any(), &PatchParams::default(), &label).await?;
    trial.idle().await?;
    let mut orphan = own[1].clone();
    orphan.metadata =
        ObjectMeta { name: Some("orphan".into()), labels: own[1].metadata.labels.clone(), ..ObjectMeta::default() };
    orphan.spec.get_or_insert_default().node_name = None;
    pods.create(&PostParams::default(), &orphan).await?;
    trial.idle().await
}

kctl::role_tests!(podset::app, exercise_all_permissions);
