//! The interpreters of the built-in kinds, one file a kind: a table of kinds and operations, and the call of its rows.
//!
//! What they do is what Karmada's do (`pkg/resourceinterpreter/default/native`), measured on the real code.

mod cronjob;
mod daemonset;
mod deployment;
mod error;
mod horizontalpodautoscaler;
mod ingress;
mod job;
mod load_balancer;
mod nested;
mod persistentvolume;
mod persistentvolumeclaim;
mod pod;
mod pod_template;
mod poddisruptionbudget;
mod prune;
mod replicaset;
mod resources;
mod secret;
mod service;
mod serviceaccount;
mod serviceimport;
mod statefulset;
mod workload;

use std::borrow::Cow;

use serde_json::Value;

pub use self::{
    error::NativeError,
    pod_template::{dependencies as pod_dependencies, requirements as pod_requirements},
};
use crate::{
    dependency,
    kind::Gvk,
    operation::{self, AggregatedStatusItem, DependentReference, Inputs, Operation, Replicas},
};

type Result<T> = std::result::Result<T, NativeError>;
type Dependencies = fn(&Value) -> Result<Vec<DependentReference>>;
/// What the clusters reported; `None` is Go's nil list.
type Items<'a> = Option<&'a [AggregatedStatusItem]>;

/// What is known of one kind.
struct Rules {
    api_version: &'static str,
    kind: &'static str,
    replicas: Option<fn(&Value) -> Result<Replicas>>,
    /// The field of the spec that holds the number of replicas.
    revised: Option<&'static str>,
    retain: Option<fn(Value, &Value) -> Result<Value>>,
    aggregate: Option<fn(Value, Items<'_>) -> Result<Value>>,
    status: Option<fn(&Value) -> Result<Value>>,
    healthy: Option<fn(&Value) -> Result<bool>>,
    dependencies: Option<Dependencies>,
}

impl Rules {
    const fn of(api_version: &'static str, kind: &'static str) -> Self {
        Self {
            api_version,
            kind,
            replicas: None,
            revised: None,
            retain: None,
            aggregate: None,
            status: None,
            healthy: None,
            dependencies: None,
        }
    }

    fn find(kind: &Gvk) -> Option<&'static Self> {
        let api_version = kind.api_version();
        RULES.iter().find(|rules| rules.kind == kind.kind && rules.api_version == api_version)
    }
}

const RULES: &[Rules] = &[
    Rules {
        replicas: Some(deployment::replicas),
        revised: Some("replicas"),
        retain: Some(deployment::retain),
        aggregate: Some(|object, items| workload::aggregate(&deployment::COUNTERS, object, items)),
        status: Some(|object| workload::status(&deployment::COUNTERS, object)),
        healthy: Some(deployment::healthy),
        dependencies: Some(deployment::dependencies),
        ..Rules::of("apps/v1", "Deployment")
    },
    Rules {
        replicas: Some(replicaset::replicas),
        revised: Some("replicas"),
        aggregate: Some(|object, items| workload::aggregate(&replicaset::COUNTERS, object, items)),
        status: Some(|object| workload::status(&replicaset::COUNTERS, object)),
        healthy: Some(replicaset::healthy),
        dependencies: Some(replicaset::dependencies),
        ..Rules::of("apps/v1", "ReplicaSet")
    },
    Rules {
        replicas: Some(statefulset::replicas),
        revised: Some("replicas"),
        aggregate: Some(|object, items| workload::aggregate(&statefulset::COUNTERS, object, items)),
        status: Some(|object| workload::status(&statefulset::COUNTERS, object)),
        healthy: Some(statefulset::healthy),
        dependencies: Some(statefulset::dependencies),
        ..Rules::of("apps/v1", "StatefulSet")
    },
    Rules {
        aggregate: Some(|object, items| workload::aggregate(&daemonset::COUNTERS, object, items)),
        status: Some(|object| workload::status(&daemonset::COUNTERS, object)),
        healthy: Some(daemonset::healthy),
        dependencies: Some(daemonset::dependencies),
        ..Rules::of("apps/v1", "DaemonSet")
    },
    Rules {
        replicas: Some(job::replicas),
        revised: Some("parallelism"),
        retain: Some(job::retain),
        aggregate: Some(job::aggregate),
        status: Some(job::status),
        dependencies: Some(job::dependencies),
        ..Rules::of("batch/v1", "Job")
    },
    Rules {
        aggregate: Some(cronjob::aggregate),
        dependencies: Some(cronjob::dependencies),
        ..Rules::of("batch/v1", "CronJob")
    },
    Rules {
        replicas: Some(pod::replicas),
        retain: Some(|desired, observed| pod::retain(&desired, observed)),
        aggregate: Some(pod::aggregate),
        healthy: Some(pod::healthy),
        dependencies: Some(pod::dependencies),
        ..Rules::of("v1", "Pod")
    },
    Rules {
        retain: Some(service::retain),
        aggregate: Some(service::aggregate),
        status: Some(service::status),
        healthy: Some(service::healthy),
        ..Rules::of("v1", "Service")
    },
    Rules {
        aggregate: Some(ingress::aggregate),
        healthy: Some(ingress::healthy),
        dependencies: Some(ingress::dependencies),
        ..Rules::of("networking.k8s.io/v1", "Ingress")
    },
    Rules { retain: Some(serviceaccount::retain), ..Rules::of("v1", "ServiceAccount") },
    Rules { retain: Some(secret::retain), ..Rules::of("v1", "Secret") },
    Rules {
        retain: Some(persistentvolumeclaim::retain),
        aggregate: Some(persistentvolumeclaim::aggregate),
        healthy: Some(persistentvolumeclaim::healthy),
        ..Rules::of("v1", "PersistentVolumeClaim")
    },
    Rules {
        retain: Some(persistentvolume::retain),
        aggregate: Some(persistentvolume::aggregate),
        ..Rules::of("v1", "PersistentVolume")
    },
    Rules {
        aggregate: Some(poddisruptionbudget::aggregate),
        status: Some(poddisruptionbudget::status),
        healthy: Some(poddisruptionbudget::healthy),
        ..Rules::of("policy/v1", "PodDisruptionBudget")
    },
    Rules {
        aggregate: Some(horizontalpodautoscaler::aggregate),
        status: Some(horizontalpodautoscaler::status),
        ..Rules::of("autoscaling/v2", "HorizontalPodAutoscaler")
    },
    Rules {
        dependencies: Some(serviceimport::dependencies),
        ..Rules::of("multicluster.x-k8s.io/v1alpha1", "ServiceImport")
    },
];

/// Tells whether the built-in interpreters have a rule for an operation on a kind. They know the status and what to prune
/// of every kind.
pub fn handles(operation: Operation, kind: &Gvk) -> bool {
    let rules = Rules::find(kind);
    match operation {
        Operation::InterpretReplica => rules.is_some_and(|rules| rules.replicas.is_some()),
        Operation::ReviseReplica => rules.is_some_and(|rules| rules.revised.is_some()),
        Operation::Retain => rules.is_some_and(|rules| rules.retain.is_some()),
        Operation::AggregateStatus => rules.is_some_and(|rules| rules.aggregate.is_some()),
        Operation::InterpretHealth => rules.is_some_and(|rules| rules.healthy.is_some()),
        Operation::InterpretDependency => rules.is_some_and(|rules| rules.dependencies.is_some()),
        Operation::InterpretStatus | Operation::Prune => true,
        Operation::InterpretComponent => false,
    }
}

/// Runs an operation of the built-in interpreter for the object's kind.
///
/// # Errors
/// The kind has no built-in interpreter for the operation (install a customization), an input is missing, or the object does not have
/// its kind's type (the error names the field).
pub fn interpret(operation: Operation, inputs: &Inputs) -> Result<Value> {
    answer(operation, inputs.object().map(Cow::Borrowed), &inputs.into())
}

/// Does the same as [`interpret`] with owned inputs, and does not copy an object that it changes.
///
/// # Errors
/// As [`interpret`].
pub fn interpret_owned(operation: Operation, mut inputs: Inputs) -> Result<Value> {
    let desired = inputs.desired.take().map(Cow::Owned);
    answer(operation, desired.or_else(|| inputs.observed.as_ref().map(Cow::Borrowed)), &(&inputs).into())
}

/// What there is beside the object that an operation is about.
struct Beside<'a> {
    observed: Option<&'a Value>,
    replicas: Option<i64>,
    items: Items<'a>,
}

impl<'a> From<&'a Inputs> for Beside<'a> {
    fn from(inputs: &'a Inputs) -> Self {
        let (observed, items) = (inputs.observed.as_ref(), inputs.status_items.as_deref());
        Self { observed, replicas: inputs.replicas, items }
    }
}

fn answer(operation: Operation, object: Option<Cow<'_, Value>>, beside: &Beside<'_>) -> Result<Value> {
    let missing = |input| NativeError::InputMissing { operation, input };
    let object = object.ok_or_else(|| missing("object"))?;
    let kind = Gvk::of(&object);
    let rules = Rules::find(&kind);
    let not_found = || NativeError::InterpreterNotFound { operation, kind: kind.to_string() };
    let output = match operation {
        Operation::InterpretReplica => {
            let replicas = rules.and_then(|rules| rules.replicas).ok_or_else(not_found)?;
            serde_json::to_value(replicas(&object)?)?
        }
        Operation::ReviseReplica => {
            let field = rules.and_then(|rules| rules.revised).ok_or_else(not_found)?;
            let replicas = beside.replicas.ok_or_else(|| missing("replicas"))?;
            workload::revise(object.into_owned(), field, replicas)?
        }
        Operation::Retain => {
            let retain = rules.and_then(|rules| rules.retain).ok_or_else(not_found)?;
            let observed = beside.observed.ok_or_else(|| missing("observed"))?;
            retain(object.into_owned(), observed)?
        }
        Operation::AggregateStatus => {
            let aggregate = rules.and_then(|rules| rules.aggregate).ok_or_else(not_found)?;
            aggregate(object.into_owned(), beside.items)?
        }
        Operation::InterpretStatus => match rules.and_then(|rules| rules.status) {
            Some(status) => status(&object)?,
            None => nested::map(&object, &["status"])?.cloned().map_or(Value::Null, Value::Object),
        },
        Operation::InterpretHealth => rules.and_then(|rules| rules.healthy).ok_or_else(not_found)?(&object)?.into(),
        Operation::InterpretDependency => {
            let dependencies = rules.and_then(|rules| rules.dependencies);
            let unknown = || NativeError::DependencyInterpreterNotFound { kind: kind.to_string() };
            let found = dependencies.ok_or_else(unknown)?(&object)?;
            dependency::verify(&found)?;
            // Go's list is nil when nothing was appended.
            if found.is_empty() { Value::Null } else { serde_json::to_value(found)? }
        }
        Operation::Prune => prune::prune(object.into_owned())?,
        Operation::InterpretComponent => return Err(not_found()),
    };
    Ok(operation::field(operation, output))
}
