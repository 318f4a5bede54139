//! `Pod` of the core group: containers that run together on one node.
//!
//! The server adds defaults, a `Pending` phase, the QoS class and the tolerations of `DefaultTolerationSeconds`.
//!
//! - Containers, apart from their images, and most of the spec are immutable. `resize` changes CPU and memory, and
//!   `ephemeralcontainers` adds containers for debugging; both write a part of the spec.
//! - A delete waits for `terminationGracePeriodSeconds`, so that the kubelet can stop the containers.
//! - `exec`, `attach`, `log`, `portforward` and `proxy` lead to processes, which do not exist in this server.
//!
//! Upstream: `pkg/registry/core/pod/strategy.go` and `pkg/apis/core/validation/validation.go`.

mod parts;
pub(crate) mod quota;
pub(crate) mod resize;
mod resources;
pub(crate) mod status;
mod table;
mod validation;

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::{
    amounts::Amounts,
    defaulting::{self, items},
    deletion::Grace,
    feature_gates::{self, Gate},
    field_errors::text,
    json_path::{entries, push, set},
    registry::kind::{
        Defaults, DeleteStrategy, Environment, Kind, ManagedFields, Metadata, Plugin, Quota, RequestContext, Requests,
        Strategy, Subresource, TableColumns, Validation,
    },
    validation::warnings,
};

pub(crate) static KIND: Kind = Kind {
    resource: "pods",
    kind: "Pod",
    metadata: Metadata::COUNTED,
    requests: Requests {
        selectable_fields: &[
            "metadata.namespace",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        selected_value: |pod, path| {
            (path == "spec.hostNetwork").then(|| pod["spec"]["hostNetwork"].as_bool().unwrap_or_default().to_string())
        },
        connects: &[
            Subresource::Attach,
            Subresource::Exec,
            Subresource::Log,
            Subresource::PortForward,
            Subresource::Proxy,
        ],
        needs_complete_namespace: true,
        created_subresources: &[Subresource::Binding, Subresource::Eviction],
        ..Requests::DEFAULT
    },
    admission: &[
        Plugin::LimitRangerForPods,
        Plugin::ServiceAccount,
        Plugin::PodSecurityForPods,
        Plugin::PriorityForPods,
        Plugin::RuntimeClass,
        Plugin::PodTopologyLabels,
        Plugin::PodResizeValidator,
    ],
    defaults: Defaults { set: defaulting::pod::pod, set_once: Some("qosClass"), ..Defaults::DEFAULT },
    strategy: Strategy {
        prepare_create,
        complete_create,
        finish_create: take_profiles,
        parts: parts::PARTS,
        kept_by_status: &["ownerReferences"],
        prepare_status,
        prepare_update,
        ..Strategy::DEFAULT
    },
    validation: Validation {
        validates_spec_only: true,
        validate: crate::validation::pod::pod,
        validate_create: validation::validate_create,
        validate_update: validation::validate_update,
        validate_status: status::validate_status,
        warn,
        warns_once_per_generation: true,
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields {
        reset_fields: &[(
            Subresource::Status,
            &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
        )],
        filled_in: FILLED_IN,
        filled_in_by_update: FILLED_IN,
        extended_lists: &["/spec/tolerations"],
        absent_when_empty: &["/spec/tolerations"],
        ..ManagedFields::DEFAULT
    },
    delete: DeleteStrategy { grace_seconds: Some(grace_seconds), ..DeleteStrategy::RETURNS_OBJECT },
    table: TableColumns { conditions: table::row_conditions, ..TableColumns::printer(table::pod) },
    quota: QUOTA,
    ..Kind::DEFAULT
};

/// Fields that admission plugins of kube-apiserver set. Here `defaulting/pod.rs` adds the tolerations. A client that
/// does not send these fields does not own them, though the stored object has them.
const FILLED_IN: &[&str] = &["/spec/preemptionPolicy", "/spec/priority", "/spec/tolerations"];
/// Counts Pods with their requests and limits. A terminated Pod uses no quota. Only a resize, or an update that adds or
/// removes `activeDeadlineSeconds`, may change the usage of a running Pod: other resources are immutable.
const QUOTA: Quota = Quota {
    counts: quota::counts,
    usage: |pod, now| if quota::is_spent(pod, now) { Amounts::new() } else { quota::usage(&pod["spec"]) },
    changes_usage: |subresource, old, new| {
        subresource == Subresource::Resize
            || (subresource.is_main() && quota::has_deadline(old) != quota::has_deadline(new))
    },
    frees_usage: Some(quota::frees_usage),
    missing: |counted, pod| quota::missing_amount_error(counted, &pod["spec"]),
    is_in_scope: quota::is_in_scope,
    ..Quota::DEFAULT
};

/// Resets the status to `Pending`. A Pod with scheduling gates also gets `PodScheduled=False` with the reason
/// `SchedulingGated`. Values of `matchLabelKeys` become selector requirements. Upstream: `podStrategy.PrepareForCreate`
/// in `pkg/registry/core/pod/strategy.go`.
fn prepare_create(environment: &mut dyn Environment, object: &mut Value) {
    object["status"] = json!({ "phase": "Pending" });
    select_by_own_labels(object);
    if object["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        object["status"]["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": environment.now(),
        }]);
    }
}

/// Completes the Pod-level resources, and sets the QoS class, which depends on them.
fn complete_create(object: &mut Value) {
    resources::complete(&mut object["spec"]);
    object["status"]["qosClass"] = defaulting::quality_of_service(&mut object["spec"]).into();
}

/// Copies `AppArmor` profiles from annotations to the containers (`applyAppArmorVersionSkew`). The field takes
/// precedence over the annotation. Invalid annotations are reported with the same warning and otherwise ignored.
fn take_profiles(request: &dyn RequestContext, pod: &mut Value) {
    if pod["spec"]["os"]["name"] == "windows" {
        return;
    }
    let annotations = pod["metadata"]["annotations"].clone();
    let pod_profile = pod["spec"]["securityContext"]["appArmorProfile"].clone();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in items(&mut pod["spec"], list) {
            let key = format!("{}{}", warnings::APP_ARMOR, text(&container["name"]));
            let Some(annotation) = annotations[&key].as_str() else { continue };
            let profile = warnings::profile_of(annotation);
            if container["securityContext"]["appArmorProfile"].is_object() || profile.as_ref() == Some(&pod_profile) {
                continue;
            }
            if let Some(profile) = profile {
                container["securityContext"]["appArmorProfile"] = profile;
            }
            request.warn(&warnings::old_profile(&format!("metadata.annotations[{key}]")));
        }
    }
}

/// Keeps the Pod-level resources of the old Pod if the new one has none, because older clients drop the field.
fn prepare_update(_: Subresource, old: &Value, new: &mut Value) {
    if new["spec"]["resources"].is_null() {
        set(&mut new["spec"], "resources", old["spec"].get("resources").cloned());
    }
}

/// Keeps the QoS class and the observed generations that a status leaves out, and drops the fields of disabled feature
/// gates (`dropDisabledPodStatusFields`). Upstream: `podStatusStrategy.PrepareForUpdate` in
/// `pkg/registry/core/pod/strategy.go`.
fn prepare_status(old: &Value, new: &mut Value) {
    keep_observed(&old["status"], &mut new["status"]);
    // The QoS class does not change once the Pod is created.
    if new["status"]["qosClass"].as_str().unwrap_or_default().is_empty() {
        set(&mut new["status"], "qosClass", old["status"].get("qosClass").cloned());
    }
    if !feature_gates::is_enabled(Gate::DRANodeAllocatableResources) {
        set(&mut new["status"], "nodeAllocatableResourceClaimStatuses", None);
    }
    if feature_gates::is_enabled(Gate::ImageVolumeWithDigest) {
        return;
    }
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        let mounts = items(&mut new["status"], list).flat_map(|status| items(status, "volumeMounts"));
        mounts.for_each(|mount| set(mount, "volumeStatus", None));
    }
}

/// Returns the grace period of a Pod in seconds. It is zero unless a kubelet may be running the Pod. A Pod without a
/// node has no containers, and one with the phase `Succeeded` or `Failed` has none left. A negative period, which old
/// objects may have, becomes 1 (`CheckGracefulDelete` of `pkg/registry/core/pod/strategy.go`).
fn grace_seconds(pod: &Value, grace: Grace) -> i64 {
    let runs = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let ended = ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase);
    if !runs || ended {
        return 0;
    }
    let seconds = match grace {
        Grace::Seconds(seconds) => seconds,
        Grace::Default => pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(0),
    };
    if seconds < 0 { 1 } else { seconds }
}

/// Warns about new Pods only. People rarely change Pods, and controllers do it often: warnings about updates would cost
/// more than they help.
fn warn(old: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    if old.is_none() {
        warnings::template(object, "", warnings);
    }
}

/// Adds the Pod's own values of `matchLabelKeys` and `mismatchLabelKeys` to the selectors
/// (`applyMatchLabelKeysAndMismatchLabelKeys`). Topology spread constraints, and required and preferred terms of
/// affinity and anti-affinity have these keys. The scheduler then only reads selectors. Keys are kept in the object, so
/// that `kubectl get -o yaml` shows both.
fn select_by_own_labels(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    let spec = &mut pod["spec"];
    let mut each = |pointer: &str, part: &str| {
        let terms = spec.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten();
        terms.filter_map(|term| term.pointer_mut(part)).for_each(|term| add_requirements(term, &labels));
    };
    each("/topologySpreadConstraints", "");
    for kind in ["podAffinity", "podAntiAffinity"] {
        each(&format!("/affinity/{kind}/requiredDuringSchedulingIgnoredDuringExecution"), "");
        each(&format!("/affinity/{kind}/preferredDuringSchedulingIgnoredDuringExecution"), "/podAffinityTerm");
    }
}

/// Adds one requirement per key whose label the Pod has. Terms without a `labelSelector` are unchanged, because an
/// absent selector matches no Pod. `matchLabelKeys` becomes `key In (value)`, and `mismatchLabelKeys` becomes
/// `key NotIn (value)`.
fn add_requirements(term: &mut Value, labels: &Value) {
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.get(field).and_then(Value::as_array).cloned().into_iter().flatten() {
            let Some(value) = key.as_str().and_then(|key| labels[key].as_str()) else { continue };
            if !term.get("labelSelector").is_some_and(Value::is_object) {
                continue;
            }
            let requirement = json!({ "key": key, "operator": operator, "values": [value] });
            push(&mut term["labelSelector"]["matchExpressions"], requirement);
        }
    }
}

/// Keeps the observed generations that a status leaves out (`preserveOldObservedGeneration`). An old kubelet, which
/// lacks the field, sends 0 or nothing; the generation that a newer writer has observed is kept. Conditions are paired
/// by type, each old one once.
fn keep_observed(old: &Value, new: &mut Value) {
    const FIELD: &str = "observedGeneration";
    let is_unset = |object: &Value| object[FIELD].as_i64().unwrap_or(0) == 0;
    if is_unset(new) {
        set(new, FIELD, old.get(FIELD).cloned());
    }
    let mut old_conditions: BTreeMap<&str, VecDeque<&Value>> = BTreeMap::new();
    for (_, condition) in entries(&old["conditions"]) {
        old_conditions.entry(text(&condition["type"])).or_default().push_back(condition);
    }
    for condition in items(new, "conditions") {
        let of_type = old_conditions.get_mut(text(&condition["type"]));
        let Some(before) = of_type.and_then(VecDeque::pop_front) else { continue };
        if is_unset(condition) {
            set(condition, FIELD, before.get(FIELD).cloned());
        }
    }
}
