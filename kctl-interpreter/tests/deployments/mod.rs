//! Functions on Deployments, one for every operation, shared by tests of the webhook and of its client.

use std::{collections::HashMap, sync::OnceLock, time::Duration};

use k8s_openapi::api::apps::v1::Deployment;
use kctl_interpreter::{
    function::{
        ClusterStatus, FunctionInfo, IntoComponents, IntoDependencies, IntoHealth, IntoReplicas, IntoStatus, Rule,
    },
    operation::{Component, DependentReference, Operation, ReplicaRequirements, Replicas},
};

/// Releases the functions that block their threads.
pub(crate) static RELEASED: OnceLock<()> = OnceLock::new();

pub(crate) fn about(operation: Operation) -> FunctionInfo {
    FunctionInfo::new(operation, "function", "src/main.rs", 7)
}

pub(crate) fn dependency(name: &str) -> DependentReference {
    DependentReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: "d".into(),
        name: name.into(),
        label_selector: None,
    }
}

/// Returns one function for every operation. The name of the object selects how the function fails.
pub(crate) fn rules() -> Vec<Rule> {
    vec![
        Rule::read::<Deployment, _, _>(about(Operation::InterpretReplica), |object| async move {
            let requests = [("cpu".to_owned(), "100m".to_owned())].into();
            let requirements = ReplicaRequirements { resource_request: requests, ..ReplicaRequirements::default() };
            let replicas = object.spec.replicas.unwrap_or(1);
            IntoReplicas::into_result(Replicas { replicas, requirements: Some(requirements) })
        }),
        Rule::read::<Deployment, _, _>(about(Operation::InterpretComponent), |object| async move {
            let replicas = object.spec.replicas.unwrap_or(1);
            IntoComponents::into_result(vec![Component { name: "main".into(), replicas, replica_requirements: None }])
        }),
        Rule::revise::<Deployment, _, _>(about(Operation::ReviseReplica), |mut object, replicas| async move {
            object.spec.replicas = Some(replicas);
            Ok(object)
        }),
        Rule::retain::<Deployment, _, _>(about(Operation::Retain), |mut object, observed| async move {
            object.spec.paused = observed.spec.paused;
            Ok(object)
        }),
        Rule::aggregate::<Deployment, ClusterStatus<i32>, _, _>(
            about(Operation::AggregateStatus),
            |mut object, items| async move {
                let sum = items.iter().filter_map(|item| item.status).sum();
                object.status.get_or_insert_default().ready_replicas = Some(sum);
                Ok(object)
            },
        ),
        Rule::read::<Deployment, _, _>(about(Operation::InterpretStatus), |object| async move {
            if object.metadata.name.as_deref() == Some("odd") {
                // A JSON object can't have a tuple as a key, so the answer can't be serialized.
                return IntoStatus::into_result(HashMap::from([((1, 2), 3)]));
            }
            IntoStatus::into_result(object.status.and_then(|status| status.ready_replicas))
        }),
        Rule::read::<Deployment, _, _>(about(Operation::InterpretDependency), |object| async move {
            let names = object.metadata.name.iter().filter(|name| *name != "free");
            IntoDependencies::into_result(names.map(|name| dependency(name)).collect::<Vec<_>>())
        }),
        Rule::read::<Deployment, _, _>(about(Operation::InterpretHealth), |object| async move {
            match object.metadata.name.as_deref() {
                Some("panics") => panic!("the roof fell in"),
                Some("fails") => Err("the database is down".into()),
                Some("blocks") => {
                    RELEASED.wait();
                    IntoHealth::into_result(true)
                }
                Some("waits") => std::future::pending().await,
                Some("naps") => {
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    IntoHealth::into_result(true)
                }
                _ => IntoHealth::into_result(object.metadata.generation != Some(2)),
            }
        }),
    ]
}
