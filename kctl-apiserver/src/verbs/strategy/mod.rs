//! What differs by kind when objects are written: generation, status, names, allocated values.

mod daemon_set;
mod generation;
mod job;
mod pod;
mod service;
mod status;
mod storage;

use serde_json::{Value, json};

use self::{
    daemon_set::{TEMPLATE_COUNT, count_template},
    generation::{changes_generation, has_generation},
    job::select_own_pods,
    pod::select_by_own_labels,
    service::{forget_other_type, forget_traffic, keep_addresses, keep_health_port},
    status::{keep_request, keeps_status},
    storage::{protect_storage, settle_sources},
};
pub(super) use self::{
    daemon_set::{say_no_template_count, wrong_template_count},
    generation::counts_generations,
    job::label_as_pods,
    service::{allocate_address, keep_families},
    status::{kept_metadata, reset},
};
use crate::{admit::rules, crd, go, kinds::Resource, names::check_label_value, request::Call, state::State};

/// Resources whose objects are answered to a delete that removes them at once; the others are answered a Status.
pub(crate) fn answers_deleted(resource: &Resource) -> bool {
    let of = resource.of.resource.as_str();
    let names: &[&str] = match resource.of.group.as_str() {
        "" => &[
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "resourcequotas",
            "serviceaccounts",
            "services",
        ],
        "resource.k8s.io" => &["deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"],
        "storage.k8s.io" => {
            &["csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"]
        }
        _ => &[],
    };
    resource.custom.is_none() && names.contains(&of)
}

/// Kinds of which no version is replaced unseen: strategies whose `AllowUnconditionalUpdate` is false.
const VERSIONED: &[(&str, &str)] = &[
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("coordination.k8s.io", "leases"),
    ("node.k8s.io", "runtimeclasses"),
    ("policy", "poddisruptionbudgets"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "csistoragecapacities"),
    ("storage.k8s.io", "volumeattachments"),
];

/// Whether a change has to say which version it changes.
pub(super) fn needs_version(resource: &Resource) -> bool {
    resource.custom.is_some() || VERSIONED.contains(&of(resource))
}

fn of(resource: &Resource) -> (&str, &str) {
    (resource.of.group.as_str(), resource.of.resource.as_str())
}

/// Makes an object ready to be stored for the first time.
pub(super) fn prepare_create(state: &mut State, resource: &Resource, object: &mut Value) {
    let resets_status = resource.has_status();
    if let Value::Object(map) = object {
        if resets_status && !keeps_status(resource) {
            map.remove("status");
        }
        let Some(Value::Object(meta)) = map.get_mut("metadata") else { return };
        for server_owned in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            meta.remove(server_owned);
        }
        meta.insert("uid".into(), state.chance.uid().into());
        meta.insert("creationTimestamp".into(), state.clock.seconds().into());
        if has_generation(resource) {
            meta.insert("generation".into(), 1.into());
        }
    }
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    match of {
        ("", "services") => {
            forget_traffic(object);
            allocate_address(state, object);
        }
        ("", "pods") => {
            object["status"] = json!({ "phase": "Pending" });
            select_by_own_labels(object);
            if object["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
                object["status"]["conditions"] = json!([{
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastTransitionTime": state.clock.seconds(),
                }]);
            }
        }
        ("", "namespaces") => prepare_namespace(object),
        ("", "limitranges") => name_limits(state, &mut object["metadata"]),
        ("apiextensions.k8s.io", "customresourcedefinitions") => crd::default_definition(object),
        ("discovery.k8s.io", "endpointslices") => drop_old_topology(object),
        ("", "nodes") => {
            // Kubelets are no longer configured by objects.
            set(&mut object["spec"], "configSource", None);
            complete_by_plugins(resource, object);
        }
        ("apps", "daemonsets") => {
            let said = object["metadata"]["annotations"][TEMPLATE_COUNT].as_str();
            if said.and_then(|count| count.parse::<i64>().ok()).is_none_or(|count| count < 1) {
                object["metadata"]["annotations"][TEMPLATE_COUNT] = "1".into();
            }
            object["status"] = json!({});
        }
        ("batch", "jobs") => select_own_pods(object),
        ("admissionregistration.k8s.io" | "certificates.k8s.io" | "apps" | "batch" | "policy", _)
            if resource.has_status() =>
        {
            object["status"] = json!({});
        }
        ("", "persistentvolumes" | "persistentvolumeclaims") => {
            complete_by_plugins(resource, object);
            object["status"] = json!({ "phase": "Pending" });
            if resource.of.resource == "persistentvolumes" {
                object["status"]["lastPhaseTransitionTime"] = state.clock.seconds().into();
            }
        }
        ("storage.k8s.io", "volumeattributesclasses") => complete_by_plugins(resource, object),
        ("coordination.k8s.io", "leases") => drop_disabled(object),
        _ => {}
    }
    if of == ("", "persistentvolumeclaims") {
        settle_sources(None, &mut object["spec"]);
    }
}

/// Fills in what a read from the store would: who has written an object has not set it, and does not own it.
pub(super) fn default_stored(call: &Call, object: &mut Value) {
    if of(&call.resource) == ("batch", "jobs") {
        label_as_pods(object);
    }
    read_again(call, object);
}

/// A taint of a device that says nothing else was added now (`SetDefaults_DeviceTaint` of `pkg/apis/resource/v1/defaults.go`).
pub(super) fn date_taints(state: &State, resource: &Resource, object: &mut Value) {
    if of(resource) != ("resource.k8s.io", "resourceslices") {
        return;
    }
    let devices = object.pointer_mut("/spec/devices").and_then(Value::as_array_mut);
    for device in devices.into_iter().flatten() {
        let taints = device.get_mut("taints").and_then(Value::as_array_mut);
        for taint in taints.into_iter().flatten().filter(|taint| taint.is_object()) {
            if taint["timeAdded"].is_null() {
                taint["timeAdded"] = state.clock.seconds().into();
            }
        }
    }
}

/// The phase of a volume was entered when its status does not say it otherwise: at its first time, or now
/// (`persistentvolumeStatusStrategy.PrepareForUpdate`).
pub(super) fn date_phase(state: &State, call: &Call, old: &Value, new: &mut Value) {
    const FIELD: &str = "lastPhaseTransitionTime";
    if of(&call.resource) != ("", "persistentvolumes") || call.subresource != "status" {
        return;
    }
    let (was, is) = (&old["status"], &mut new["status"]);
    if was["phase"] == is["phase"] {
        if is[FIELD].is_null() {
            set(is, FIELD, was.get(FIELD).cloned());
        }
    } else if is[FIELD].is_null() || is[FIELD] == was[FIELD] {
        is[FIELD] = state.clock.seconds().into();
    }
}

/// Lists that are null when nothing is in them, though they may be sent without items: the store does not tell the two apart.
const NULL_WHEN_EMPTY: [(&str, &str, &str); 2] =
    [("", "limitranges", "/spec/limits"), ("storage.k8s.io", "csinodes", "/spec/drivers")];

/// What an object is after it was written and read: of a custom one numbers are as JSON of Go has them, and there is no null
/// that an apply has left.
pub(super) fn read_again(call: &Call, object: &mut Value) {
    for (group, resource, list) in NULL_WHEN_EMPTY {
        if let Some(list) =
            object.pointer_mut(list).filter(|list| of(&call.resource) == (group, resource) && **list == json!([]))
        {
            *list = Value::Null;
        }
    }
    if let (Some(_), Some(schema)) = (&call.resource.custom, call.resource.schema()) {
        go::whole_numbers(object);
        if call.applies() {
            crd::default(schema, object);
        }
    }
}

/// Says the name of an object where it is repeated, once it has been generated. `sent` is the object before.
///
/// A job whose name was sent shares its labels with its pods, where they are completed; one whose name is generated is a copy.
pub(super) fn say_generated_name(resource: &Resource, sent: &Value, object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    match of(resource) {
        // The real server labels it when it has judged it: a name that is none is refused as a name alone.
        ("", "namespaces") if check_label_value(name.as_str().unwrap_or_default()).is_empty() => {
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        ("batch", "jobs") => {
            let labels = &mut object["spec"]["template"]["metadata"]["labels"];
            for label in ["batch.kubernetes.io/job-name", "job-name"] {
                if labels[label] == "" {
                    labels[label] = name.clone();
                }
            }
            let mut sent = sent.clone();
            label_as_pods(&mut sent);
            set(
                &mut object["metadata"],
                "labels",
                sent["metadata"].get("labels").filter(|labels| !labels.is_null()).cloned(),
            );
            label_as_pods(object);
        }
        _ => {}
    }
}

/// Limits without a name get one.
fn name_limits(state: &mut State, meta: &mut Value) {
    if ["name", "generateName"].iter().all(|field| meta[field].as_str().unwrap_or_default().is_empty()) {
        meta["name"] = state.chance.uid().into();
    }
}

/// A namespace is held until what is in it has gone.
fn prepare_namespace(object: &mut Value) {
    object["status"] = json!({ "phase": "Active" });
    let own = Value::from("kubernetes");
    match &mut object["spec"]["finalizers"] {
        Value::Array(list) if list.contains(&own) => {}
        Value::Array(list) => list.push(own),
        none => *none = json!([own]),
    }
    let name = object["metadata"]["name"].clone();
    if name.as_str().is_some_and(|name| !name.is_empty()) {
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    }
}

/// What mutating plugins add to a new object before webhooks see it: `TaintNodesByCondition` and
/// `StorageObjectInUseProtection`.
pub(super) fn complete_by_plugins(resource: &Resource, object: &mut Value) {
    match of(resource) {
        ("", "nodes") => taint_new_node(&mut object["spec"]["taints"]),
        ("", "persistentvolumes" | "persistentvolumeclaims") | ("storage.k8s.io", "volumeattributesclasses") => {
            protect_storage(resource, object);
        }
        _ => {}
    }
}

/// Nothing is placed on a node that nobody has heard of.
fn taint_new_node(taints: &mut Value) {
    let taint = json!({ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" });
    match taints {
        Value::Array(list) if list.iter().any(|one| one["key"] == taint["key"] && one["effect"] == taint["effect"]) => {
        }
        Value::Array(list) => list.push(taint),
        none => *none = json!([taint]),
    }
}

/// Fields of leases that belong to a feature which is off by default: `CoordinatedLeaderElection`.
fn drop_disabled(lease: &mut Value) {
    for field in ["strategy", "preferredHolder"] {
        set(&mut lease["spec"], field, None);
    }
}

/// What was told of the place of an endpoint before `discovery.k8s.io/v1` (`dropTopologyOnV1`).
fn drop_old_topology(slice: &mut Value) {
    for endpoint in slice["endpoints"].as_array_mut().into_iter().flatten() {
        set(endpoint, "deprecatedTopology", None);
    }
}

/// Carries over what a write of the object or of its status may not touch, and counts the generation.
pub(super) fn prepare_update(resource: &Resource, subresource: &str, old: &Value, new: &mut Value) {
    reset(resource, subresource, old, new);
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    match of {
        ("coordination.k8s.io", "leases") => drop_disabled(new),
        ("apiextensions.k8s.io", "customresourcedefinitions") => crd::default_definition_spec(new),
        ("", "persistentvolumeclaims") if subresource.is_empty() => {
            settle_sources(old["spec"].get("dataSource"), &mut new["spec"]);
        }
        ("certificates.k8s.io", "certificatesigningrequests") => keep_request(subresource, old, new),
        ("", "services") => {
            keep_addresses(old, new);
            forget_other_type(old, new);
            keep_health_port(old, new);
            forget_traffic(new);
        }
        ("resource.k8s.io", "resourceclaims") => rules::forget_returned(old, new),
        ("", "nodes") if old["spec"]["configSource"].is_null() => forget(new, "spec", "configSource"),
        ("", "namespaces") if subresource.is_empty() => {
            // They have their own subresource.
            let finalizers = old["spec"].get("finalizers").cloned();
            set(&mut new["spec"], "finalizers", finalizers);
        }
        _ => {}
    }
    let meta = &old["metadata"];
    for server_owned in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"]
    {
        set(&mut new["metadata"], server_owned, meta.get(server_owned).cloned());
    }
    if of == ("apiextensions.k8s.io", "customresourcedefinitions") {
        keep_stored_version(new);
    }
    if of == ("apps", "daemonsets") {
        count_template(old, new);
    }
    let annotated = of == ("apps", "deployments")
        && subresource.is_empty()
        && old["metadata"]["annotations"] != new["metadata"]["annotations"];
    let labelled =
        of == ("discovery.k8s.io", "endpointslices") && old["metadata"]["labels"] != new["metadata"]["labels"];
    if counts_generations(resource) && (annotated || labelled || changes_generation(resource, old, new)) {
        new["metadata"]["generation"] = (meta["generation"].as_i64().unwrap_or(0) + 1).into();
    }
    // Who sends it has changed the object, although it is not kept.
    if of == ("discovery.k8s.io", "endpointslices") {
        drop_old_topology(new);
    }
}

/// Whether a subresource is a part of a pod that has its own rules.
pub(super) fn is_part_of_pod(resource: &Resource, subresource: &str) -> bool {
    of(resource) == ("", "pods") && ["resize", "ephemeralcontainers"].contains(&subresource)
}

/// The version in which objects will be stored is one of those in which some are.
fn keep_stored_version(definition: &mut Value) {
    let versions = definition["spec"]["versions"].as_array();
    let name = versions
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone());
    let stored = definition
        .get_mut("status")
        .and_then(Value::as_object_mut)
        .map(|status| status.entry("storedVersions").or_insert(Value::Null));
    match (name, stored) {
        (Some(name), Some(Value::Array(stored))) if !stored.contains(&name) => stored.push(name),
        (Some(name), Some(stored)) if stored.is_null() => *stored = json!([name]),
        _ => {}
    }
}

/// Removes a field of a part that may not be there.
fn forget(object: &mut Value, part: &str, field: &str) {
    if let Some(part) = object.get_mut(part) {
        set(part, field, None);
    }
}

pub(super) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let Value::Object(map) = object else { return };
    match value {
        Some(value) => map.insert(field.into(), value),
        None => map.remove(field),
    };
}
