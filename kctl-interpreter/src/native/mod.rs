//! Rules for the built-in kinds of Kubernetes: the last layer of the chain, which needs no
//! installation.
//!
//! Each kind has its own file, and `RULES` is the table of kinds and operations. The rules come from Karmada
//! (`pkg/resourceinterpreter/default/native`), and a test compares them with answers that the real code gave. A kind
//! matches by its exact group, version and kind: `apps/v1 Deployment` has rules, `apps/v1beta1 Deployment` does not.
//!
//! | kind | replicas | revised field | retain | aggregate | status | health | dependencies |
//! |---|---|---|---|---|---|---|---|
//! | `apps/v1 Deployment` | yes | `spec.replicas` | yes | yes | counters | yes | yes |
//! | `apps/v1 ReplicaSet` | yes | `spec.replicas` | | yes | counters | yes | yes |
//! | `apps/v1 StatefulSet` | yes | `spec.replicas` | | yes | counters | yes | yes |
//! | `apps/v1 DaemonSet` | | | | yes | counters | yes | yes |
//! | `batch/v1 Job` | yes | `spec.parallelism` | yes | yes | parts | | yes |
//! | `batch/v1 CronJob` | | | | yes | whole | | yes |
//! | `v1 Pod` | 1 | | yes | yes | whole | yes | yes |
//! | `v1 Service` | | | yes | yes | load balancer | yes | |
//! | `networking.k8s.io/v1 Ingress` | | | | yes | whole | yes | yes |
//! | `v1 ServiceAccount` | | | yes | | whole | | |
//! | `v1 Secret` | | | yes | | whole | | |
//! | `v1 PersistentVolumeClaim` | | | yes | yes | whole | yes | |
//! | `v1 PersistentVolume` | | | yes | yes | whole | | |
//! | `policy/v1 PodDisruptionBudget` | | | | yes | counters | yes | |
//! | `autoscaling/v2 HorizontalPodAutoscaler` | | | | yes | counters | | |
//! | `multicluster.x-k8s.io/v1alpha1 ServiceImport` | | | | | whole | | yes |
//!
//! Two operations have a rule for every kind, also for custom resources. `InterpretStatus` returns
//! the whole `status` where the table has no entry, and `Prune` removes the metadata that belongs
//! to one cluster. `InterpretComponent` has no rule here: Karmada has none either.
//!
//! A rule that looks inside an object converts it to its Go type, as Karmada does. Where such a
//! rule changes the object, the result is written back from that type: unknown fields are gone, and
//! some empty ones appear. Rules that only copy a field, such as `Retain` except for Pods, leave the rest of the object
//! as it is.
//!
//! Most programs use these rules through [`Chain::native`](crate::chain::Chain::native). Call
//! [`interpret`] to run them without a chain, for example in a test:
//!
//! ```
//! use kctl_interpreter::{native, operation::{Object, Operation}};
//! use serde_json::json;
//!
//! let claim = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": { "phase": "Bound" } });
//! let answer = native::interpret(Operation::InterpretHealth, &Object(claim).into())?;
//! assert_eq!(answer, json!({ "healthy": true }));
//! # Ok::<_, native::NativeError>(())
//! ```

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
/// A rule for `InterpretDependency`: returns the references of an object, unverified.
type Dependencies = fn(&Value) -> Result<Vec<DependentReference>>;
/// The statuses that member clusters reported. `None` is Go's nil list, which the rule for Pods
/// treats differently from an empty list.
type Items<'a> = Option<&'a [AggregatedStatusItem]>;

/// The rules of one kind. `None` means that the kind has no rule for the operation.
struct Rules {
    /// `apiVersion` of the objects, compared as a whole.
    api_version: &'static str,
    kind: &'static str,
    /// `InterpretReplica`: the replicas of the object and the requirements of one.
    replicas: Option<fn(&Value) -> Result<Replicas>>,
    /// `ReviseReplica`: the field of `spec` that holds the number of replicas.
    revised: Option<&'static str>,
    /// `Retain`: takes the desired and the observed object, and returns the changed desired one.
    retain: Option<fn(Value, &Value) -> Result<Value>>,
    /// `AggregateStatus`: returns the object with a status made from the statuses of the member clusters. An object
    /// whose status would not change is returned as it was given.
    aggregate: Option<fn(Value, Items<'_>) -> Result<Value>>,
    /// `InterpretStatus`; without a rule the whole `status` is the answer.
    status: Option<fn(&Value) -> Result<Value>>,
    /// `InterpretHealth`: returns `true` if the object is healthy in its member cluster.
    healthy: Option<fn(&Value) -> Result<bool>>,
    /// `InterpretDependency`: returns the objects that must follow the object to its clusters.
    dependencies: Option<Dependencies>,
}

impl Rules {
    /// Returns the rules of a kind without any rule, to be completed with struct update syntax.
    const fn empty(api_version: &'static str, kind: &'static str) -> Self {
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

    /// Returns the rules of a kind; `None` for a kind without a row in `RULES`.
    fn find(kind: &Gvk) -> Option<&'static Self> {
        let api_version = kind.api_version();
        RULES.iter().find(|rules| rules.kind == kind.kind && rules.api_version == api_version)
    }
}

/// The table of kinds. Each row names the functions of the kind's file; the module docs show it as
/// a matrix.
const RULES: &[Rules] = &[
    Rules {
        replicas: Some(deployment::replicas),
        revised: Some("replicas"),
        retain: Some(deployment::retain),
        aggregate: Some(|object, items| workload::aggregate(&deployment::COUNTERS, object, items)),
        status: Some(|object| workload::status(&deployment::COUNTERS, object)),
        healthy: Some(deployment::is_healthy),
        dependencies: Some(deployment::dependencies),
        ..Rules::empty("apps/v1", "Deployment")
    },
    Rules {
        replicas: Some(replicaset::replicas),
        revised: Some("replicas"),
        aggregate: Some(|object, items| workload::aggregate(&replicaset::COUNTERS, object, items)),
        status: Some(|object| workload::status(&replicaset::COUNTERS, object)),
        healthy: Some(replicaset::is_healthy),
        dependencies: Some(replicaset::dependencies),
        ..Rules::empty("apps/v1", "ReplicaSet")
    },
    Rules {
        replicas: Some(statefulset::replicas),
        revised: Some("replicas"),
        aggregate: Some(|object, items| workload::aggregate(&statefulset::COUNTERS, object, items)),
        status: Some(|object| workload::status(&statefulset::COUNTERS, object)),
        healthy: Some(statefulset::is_healthy),
        dependencies: Some(statefulset::dependencies),
        ..Rules::empty("apps/v1", "StatefulSet")
    },
    Rules {
        aggregate: Some(|object, items| workload::aggregate(&daemonset::COUNTERS, object, items)),
        status: Some(|object| workload::status(&daemonset::COUNTERS, object)),
        healthy: Some(daemonset::is_healthy),
        dependencies: Some(daemonset::dependencies),
        ..Rules::empty("apps/v1", "DaemonSet")
    },
    Rules {
        replicas: Some(job::replicas),
        revised: Some("parallelism"),
        retain: Some(job::retain),
        aggregate: Some(job::aggregate),
        status: Some(job::status),
        dependencies: Some(job::dependencies),
        ..Rules::empty("batch/v1", "Job")
    },
    Rules {
        aggregate: Some(cronjob::aggregate),
        dependencies: Some(cronjob::dependencies),
        ..Rules::empty("batch/v1", "CronJob")
    },
    Rules {
        replicas: Some(pod::replicas),
        retain: Some(|desired, observed| pod::retain(&desired, observed)),
        aggregate: Some(pod::aggregate),
        healthy: Some(pod::is_healthy),
        dependencies: Some(pod::dependencies),
        ..Rules::empty("v1", "Pod")
    },
    Rules {
        retain: Some(service::retain),
        aggregate: Some(service::aggregate),
        status: Some(service::status),
        healthy: Some(service::is_healthy),
        ..Rules::empty("v1", "Service")
    },
    Rules {
        aggregate: Some(ingress::aggregate),
        healthy: Some(ingress::is_healthy),
        dependencies: Some(ingress::dependencies),
        ..Rules::empty("networking.k8s.io/v1", "Ingress")
    },
    Rules { retain: Some(serviceaccount::retain), ..Rules::empty("v1", "ServiceAccount") },
    Rules { retain: Some(secret::retain), ..Rules::empty("v1", "Secret") },
    Rules {
        retain: Some(persistentvolumeclaim::retain),
        aggregate: Some(persistentvolumeclaim::aggregate),
        healthy: Some(persistentvolumeclaim::is_healthy),
        ..Rules::empty("v1", "PersistentVolumeClaim")
    },
    Rules {
        retain: Some(persistentvolume::retain),
        aggregate: Some(persistentvolume::aggregate),
        ..Rules::empty("v1", "PersistentVolume")
    },
    Rules {
        aggregate: Some(poddisruptionbudget::aggregate),
        status: Some(poddisruptionbudget::status),
        healthy: Some(poddisruptionbudget::is_healthy),
        ..Rules::empty("policy/v1", "PodDisruptionBudget")
    },
    Rules {
        aggregate: Some(horizontalpodautoscaler::aggregate),
        status: Some(horizontalpodautoscaler::status),
        ..Rules::empty("autoscaling/v2", "HorizontalPodAutoscaler")
    },
    Rules {
        dependencies: Some(serviceimport::dependencies),
        ..Rules::empty("multicluster.x-k8s.io/v1alpha1", "ServiceImport")
    },
];

/// Returns `true` if the native layer has a rule for an operation on a kind.
///
/// `InterpretStatus` and `Prune` have a rule for every kind, so for them the answer is always
/// `true`. `InterpretComponent` has no native rule.
///
/// ```
/// use kctl_interpreter::{kind::Gvk, native, operation::Operation};
///
/// let service = Gvk { group: String::new(), version: "v1".into(), kind: "Service".into() };
/// assert!(native::handles(Operation::Retain, &service));
/// assert!(!native::handles(Operation::InterpretReplica, &service));
///
/// let widget = Gvk { group: "example.com".into(), version: "v1".into(), kind: "Widget".into() };
/// assert!(native::handles(Operation::InterpretStatus, &widget));
/// assert!(!native::handles(Operation::InterpretHealth, &widget));
/// ```
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

/// Runs the native rule for an operation on the object's kind, and returns the answer in the JSON
/// form of [`Op::encode`](crate::operation::Op::encode).
///
/// The inputs are borrowed, so an operation that changes the object copies it first. Use
/// [`interpret_owned`] to save the copy. The function computes only: it sends no request and blocks
/// no thread.
///
/// ```
/// use kctl_interpreter::{native, operation::{Object, Operation}};
/// use serde_json::json;
///
/// let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "parallelism": 5, "completions": 3 } });
/// let answer = native::interpret(Operation::InterpretReplica, &Object(job).into())?;
/// assert_eq!(answer, json!({ "replica": 3, "requires": null }));
/// # Ok::<_, native::NativeError>(())
/// ```
///
/// # Errors
/// - [`NativeError::InterpreterNotFound`] and [`NativeError::DependencyInterpreterNotFound`]: the
///   kind has no native rule for the operation. Install a customization or a webhook.
/// - [`NativeError::InputMissing`]: the inputs lack the object, the observed object or the
///   replicas.
/// - [`NativeError::ObjectInvalid`] and other variants: the object or a reported status does not
///   have the type of its kind. The message names the field.
pub fn interpret(operation: Operation, inputs: &Inputs) -> Result<Value> {
    interpret_object(operation, inputs.object().map(Cow::Borrowed), &inputs.into())
}

/// Runs the same rules as [`interpret`] with owned inputs, and changes the object in place where
/// the rule allows it.
///
/// ```
/// use kctl_interpreter::{native, operation::{Operation, Revision}};
/// use serde_json::json;
///
/// let object = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "spec": { "replicas": 3 } });
/// let answer = native::interpret_owned(Operation::ReviseReplica, Revision { object, replicas: 1 }.into())?;
/// assert_eq!(answer["revised"]["spec"]["replicas"], 1);
/// # Ok::<_, native::NativeError>(())
/// ```
///
/// # Errors
/// The same errors as [`interpret`].
pub fn interpret_owned(operation: Operation, mut inputs: Inputs) -> Result<Value> {
    let desired = inputs.desired.take().map(Cow::Owned);
    interpret_object(operation, desired.or_else(|| inputs.observed.as_ref().map(Cow::Borrowed)), &(&inputs).into())
}

/// The inputs of an operation apart from its object, borrowed.
struct OtherInputs<'a> {
    /// The object of the member cluster, for `Retain`.
    observed: Option<&'a Value>,
    /// The new number of replicas, for `ReviseReplica`.
    replicas: Option<i64>,
    /// The reported statuses, for `AggregateStatus`.
    items: Items<'a>,
}

impl<'a> From<&'a Inputs> for OtherInputs<'a> {
    fn from(inputs: &'a Inputs) -> Self {
        let (observed, items) = (inputs.observed.as_ref(), inputs.status_items.as_deref());
        Self { observed, replicas: inputs.replicas, items }
    }
}

/// Finds the rule, runs it and wraps its output in the field of the operation.
///
/// A borrowed object is copied only by operations that change it. Dependencies are verified here,
/// so that every kind reports a broken reference the same way. An empty list of dependencies
/// becomes `null`, as Go's nil slice does.
fn interpret_object(operation: Operation, object: Option<Cow<'_, Value>>, others: &OtherInputs<'_>) -> Result<Value> {
    let missing = |input| NativeError::InputMissing { operation, input };
    let object = object.ok_or_else(|| missing("object"))?;
    let kind = Gvk::from_object(&object);
    let rules = Rules::find(&kind);
    let not_found = || NativeError::InterpreterNotFound { operation, kind: kind.to_string() };
    let output = match operation {
        Operation::InterpretReplica => {
            let replicas = rules.and_then(|rules| rules.replicas).ok_or_else(not_found)?;
            serde_json::to_value(replicas(&object)?)?
        }
        Operation::ReviseReplica => {
            let field = rules.and_then(|rules| rules.revised).ok_or_else(not_found)?;
            let replicas = others.replicas.ok_or_else(|| missing("replicas"))?;
            workload::revise(object.into_owned(), field, replicas)?
        }
        Operation::Retain => {
            let retain = rules.and_then(|rules| rules.retain).ok_or_else(not_found)?;
            let observed = others.observed.ok_or_else(|| missing("observed"))?;
            retain(object.into_owned(), observed)?
        }
        Operation::AggregateStatus => {
            let aggregate = rules.and_then(|rules| rules.aggregate).ok_or_else(not_found)?;
            aggregate(object.into_owned(), others.items)?
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
            // In Go the list is nil if nothing was appended.
            if found.is_empty() { Value::Null } else { serde_json::to_value(found)? }
        }
        Operation::Prune => prune::prune(object.into_owned())?,
        Operation::InterpretComponent => return Err(not_found()),
    };
    Ok(operation::field(operation, output))
}
