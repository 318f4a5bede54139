//! What differs by kind when objects are written: generation, status, names, allocated values.

use serde_json::{Map, Value, json};

use super::pod_parts;
use crate::{
    admit::{names::check_label_value, rules},
    crd, go,
    kinds::Resource,
    request::Call,
    store::{State, address},
};

/// Built-in resources whose `metadata.generation` counts changes, as the real server was seen to do it.
const COUNTED: &[(&str, &str)] = &[
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
    ("discovery.k8s.io", "endpointslices"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("resource.k8s.io", "deviceclasses"),
    ("resource.k8s.io", "resourceslices"),
    ("scheduling.k8s.io", "priorityclasses"),
];

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

/// The number of the template of a daemon set.
const TEMPLATE_COUNT: &str = "deprecated.daemonset.template.generation";

/// Of these, either the first generation has no number or it stays the only one.
const UNNUMBERED: &[(&str, &str)] = &[("storage.k8s.io", "csidrivers")];
const UNCOUNTED: &[(&str, &str)] = &[("scheduling.k8s.io", "priorityclasses")];

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

/// Whether a new object has a generation.
fn has_generation(resource: &Resource) -> bool {
    resource.custom.is_some() || COUNTED.contains(&of(resource))
}

pub(super) fn counts_generations(resource: &Resource) -> bool {
    let of = of(resource);
    UNNUMBERED.contains(&of) || (has_generation(resource) && !UNCOUNTED.contains(&of))
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
        ("", "services") => allocate_address(state, object),
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
        settle_sources(&mut object["spec"]);
    }
}

/// Labels that a pod shares with those that it is compared with are written into the selectors, with their values
/// (`applyMatchLabelKeysAndMismatchLabelKeys`).
fn select_by_own_labels(pod: &mut Value) {
    let labels = pod["metadata"]["labels"].clone();
    let spec = &mut pod["spec"];
    let mut each = |pointer: &str, part: &str| {
        for term in spec.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(term) = term.pointer_mut(part) {
                add_requirements(term, &labels);
            }
        }
    };
    each("/topologySpreadConstraints", "");
    for kind in ["podAffinity", "podAntiAffinity"] {
        each(&format!("/affinity/{kind}/requiredDuringSchedulingIgnoredDuringExecution"), "");
        each(&format!("/affinity/{kind}/preferredDuringSchedulingIgnoredDuringExecution"), "/podAffinityTerm");
    }
}

fn add_requirements(term: &mut Value, labels: &Value) {
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.get(field).and_then(Value::as_array).cloned().into_iter().flatten() {
            let Some(value) = key.as_str().and_then(|key| labels[key].as_str()) else { continue };
            if !term.get("labelSelector").is_some_and(Value::is_object) {
                continue;
            }
            let requirement = json!({ "key": key, "operator": operator, "values": [value] });
            match &mut term["labelSelector"]["matchExpressions"] {
                Value::Array(list) => list.push(requirement),
                none => *none = json!([requirement]),
            }
        }
    }
}

/// What a claim is filled from: two fields tell the same, and one of them takes few kinds (`NormalizeDataSources`).
fn settle_sources(spec: &mut Value) {
    let is_taken = |source: &Value| {
        let (group, kind) = (source["apiGroup"].as_str().unwrap_or_default(), source["kind"].as_str());
        matches!(
            (group, kind),
            ("", Some("PersistentVolumeClaim")) | ("snapshot.storage.k8s.io", Some("VolumeSnapshot"))
        )
    };
    let has = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    // `CrossNamespaceVolumeDataSource` is off by default.
    if has(&spec["dataSourceRef"]["namespace"]) {
        set(spec, "dataSourceRef", None);
    }
    if spec["dataSourceRef"].is_null() && !is_taken(&spec["dataSource"]) {
        set(spec, "dataSource", None);
    }
    share_sources(spec);
}

/// The two fields tell the same, where one of them is not there.
fn share_sources(spec: &mut Value) {
    let (source, reference) = (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned());
    match (source, reference) {
        (Some(source), None) if !source.is_null() => set(spec, "dataSourceRef", Some(source)),
        (None, Some(mut reference)) if !reference.is_null() => {
            set(&mut reference, "namespace", None);
            set(spec, "dataSource", Some(reference));
        }
        _ => {}
    }
}

/// The selector and the labels by which a job knows its pods (`generateSelector`).
fn select_own_pods(job: &mut Value) {
    job["status"] = json!({});
    let is_own = job["spec"]["manualSelector"] != true;
    if is_own {
        label_own_pods(job);
    }
    label_as_pods(job);
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

/// Gives a job without labels of its own those of its pods (`SetDefaults_Job` of `pkg/apis/batch/v1/defaults.go`).
pub(super) fn label_as_pods(job: &mut Value) {
    let template = job["spec"]["template"]["metadata"].get("labels").cloned().unwrap_or_default();
    let own = &mut job["metadata"]["labels"];
    if own.as_object().is_none_or(Map::is_empty) && !template.is_null() {
        *own = template;
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

fn label_own_pods(job: &mut Value) {
    let (uid, name) = (job["metadata"]["uid"].clone(), job["metadata"]["name"].clone());
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    for (label, value) in labels {
        job["spec"]["template"]["metadata"]["labels"][label] = value.clone();
    }
    job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid;
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

/// What the admission plugin `StorageObjectInUseProtection` adds.
fn protect_storage(resource: &Resource, object: &mut Value) {
    let name = match resource.of.resource.as_str() {
        "persistentvolumes" => "pv",
        "volumeattributesclasses" => "vac",
        _ => "pvc",
    };
    let finalizer = Value::from(format!("kubernetes.io/{name}-protection"));
    match &mut object["metadata"]["finalizers"] {
        Value::Array(list) if list.contains(&finalizer) => {}
        Value::Array(list) => list.push(finalizer),
        none => *none = json!([finalizer]),
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

/// Nodes come with the status that their kubelet has found.
fn keeps_status(resource: &Resource) -> bool {
    resource.custom.is_none() && resource.of.group.is_empty() && resource.of.resource == "nodes"
}

/// Gives a service an address, when it is of a type that has one and brings none.
pub(super) fn allocate_address(state: &mut State, object: &mut Value) {
    let spec = &mut object["spec"];
    if spec["type"] == "ExternalName" || spec["clusterIP"].as_str().is_some_and(|given| !given.is_empty()) {
        return;
    }
    state.n_addresses += 1;
    let address = address(state.n_addresses);
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = address.into();
}

/// Carries over what a write of the object or of its status may not touch, and counts the generation.
pub(super) fn prepare_update(resource: &Resource, subresource: &str, old: &Value, new: &mut Value) {
    reset(resource, subresource, old, new);
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    match of {
        ("coordination.k8s.io", "leases") => drop_disabled(new),
        ("apiextensions.k8s.io", "customresourcedefinitions") => crd::default_definition_spec(new),
        ("", "persistentvolumeclaims") if subresource.is_empty() => share_sources(&mut new["spec"]),
        ("certificates.k8s.io", "certificatesigningrequests") => keep_request(subresource, old, new),
        ("", "services") => {
            keep_addresses(old, new);
            forget_other_type(old, new);
            keep_health_port(old, new);
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
    if resource.of.resource == "customresourcedefinitions" && subresource.is_empty() {
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

/// Takes what is not written through a subresource from the live object.
pub(super) fn reset(resource: &Resource, subresource: &str, old: &Value, new: &mut Value) {
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    let custom = resource.custom.is_some();
    match subresource {
        "status" | "approval" => {
            let status = new.get("status").cloned();
            if custom {
                let managed = new["metadata"].get("managedFields").cloned();
                *new = old.clone();
                set(&mut new["metadata"], "managedFields", managed);
            } else {
                let meta = new["metadata"].clone();
                *new = old.clone();
                new["metadata"] = meta;
                for field in kept_of_status(of) {
                    set(&mut new["metadata"], field, old["metadata"].get(*field).cloned());
                }
            }
            set(new, "status", status);
            if of == ("", "pods") {
                keep_observed(&old["status"], &mut new["status"]);
                // It is the kubelet's promise from the start.
                if new["status"]["qosClass"].as_str().unwrap_or_default().is_empty() {
                    set(&mut new["status"], "qosClass", old["status"].get("qosClass").cloned());
                }
                // A feature that is off by default: `DRANodeAllocatableResources`.
                set(&mut new["status"], "nodeAllocatableResourceClaimStatuses", None);
            }
            if of == ("", "nodes") && old["status"]["config"].is_null() {
                // Nodes are not told their configuration any more.
                forget(new, "status", "config");
            }
        }
        "resize" | "ephemeralcontainers" if is_part_of_pod(resource, subresource) => {
            *new = pod_parts::with_part(subresource, old, new);
        }
        "" if resource.has_status() => set(new, "status", old.get("status").cloned()),
        _ => {}
    }
}

/// Which generation of a pod was seen stays with those who do not say it (`preserveOldObservedGeneration`).
fn keep_observed(old: &Value, new: &mut Value) {
    const FIELD: &str = "observedGeneration";
    let is_unsaid = |of: &Value| of[FIELD].as_i64().unwrap_or(0) == 0;
    if is_unsaid(new) {
        set(new, FIELD, old.get(FIELD).cloned());
    }
    let mut known: Vec<&Value> = old["conditions"].as_array().into_iter().flatten().collect();
    for condition in new.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(at) = known.iter().position(|one| one["type"] == condition["type"]) else { continue };
        let before = known.remove(at);
        if is_unsaid(condition) {
            set(condition, FIELD, before.get(FIELD).cloned());
        }
    }
}

/// The metadata that a write of a status leaves alone, as the strategies of the kinds say (`statusStrategy.PrepareForUpdate`).
fn kept_of_status(of: (&str, &str)) -> &'static [&'static str] {
    match of {
        ("", "pods") => &["ownerReferences"],
        ("apps", "deployments") => &["labels"],
        (
            "admissionregistration.k8s.io"
            | "apiextensions.k8s.io"
            | "apiregistration.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "resource.k8s.io",
            _,
        )
        | ("networking.k8s.io", "servicecidrs")
        | ("storage.k8s.io", "volumeattachments") => &["ownerReferences", "labels", "annotations", "finalizers"],
        _ => &[],
    }
}

/// Whether a subresource is a part of a pod that has its own rules.
pub(super) fn is_part_of_pod(resource: &Resource, subresource: &str) -> bool {
    of(resource) == ("", "pods") && ["resize", "ephemeralcontainers"].contains(&subresource)
}

/// What is asked for stays, and what was issued is not for those who approve.
fn keep_request(subresource: &str, old: &Value, new: &mut Value) {
    set(new, "spec", old.get("spec").cloned());
    if subresource == "approval" {
        set(&mut new["status"], "certificate", old["status"].get("certificate").cloned());
    }
}

/// The addresses of a service that an update leaves out stay; a changed first one is told for all.
fn keep_addresses(old: &Value, new: &mut Value) {
    let (was, is) = (&old["spec"], &mut new["spec"]);
    if is["type"] == "ExternalName" && was["type"] != "ExternalName" {
        for field in ["clusterIP", "clusterIPs", "internalTrafficPolicy", "ipFamilies", "ipFamilyPolicy"] {
            set(is, field, None);
        }
    }
    if was["type"] == "ExternalName" || is["type"] == "ExternalName" {
        return;
    }
    if is["clusterIP"].as_str().is_none_or(str::is_empty) {
        set(is, "clusterIP", was.get("clusterIP").cloned());
    }
    if is["clusterIPs"].is_null() || (is["clusterIPs"] == was["clusterIPs"] && is["clusterIP"] != was["clusterIP"]) {
        let address = is["clusterIP"].clone();
        set(is, "clusterIPs", (!address.is_null()).then(|| json!([address])));
    }
}

/// The port at which nodes tell balancers whether they have pods of a service stays as long as it is used.
fn keep_health_port(old: &Value, new: &mut Value) {
    const PORT: &str = "healthCheckNodePort";
    let (was, is) = (&old["spec"], &mut new["spec"]);
    if !rules::is_checked_on_nodes(was) {
        return;
    }
    let is_checked = rules::is_checked_on_nodes(is);
    if is_checked && is[PORT].as_i64().unwrap_or(0) == 0 {
        set(is, PORT, was.get(PORT).cloned());
    } else if !is_checked && is[PORT] == was[PORT] {
        set(is, PORT, None);
    }
}

/// What a service had for its type goes with the type, unless it was changed, too (`dropTypeDependentFields`).
fn forget_other_type(old: &Value, new: &mut Value) {
    let (was, is) = (&old["spec"], &mut new["spec"]);
    let kind = |spec: &Value| spec["type"].as_str().unwrap_or("ClusterIP").to_owned();
    let (before, after) = (kind(was), kind(is));
    let on_nodes = |kind: &str| ["NodePort", "LoadBalancer"].contains(&kind);
    if on_nodes(&before) && !on_nodes(&after) {
        // Ports may come in another order, but none that was given by hand.
        let ports = |spec: &Value| -> Vec<i64> {
            let list = spec["ports"].as_array().into_iter().flatten();
            list.filter_map(|port| port["nodePort"].as_i64()).filter(|port| *port != 0).collect()
        };
        let known = ports(was);
        if ports(is).iter().all(|port| known.contains(port)) {
            for port in is["ports"].as_array_mut().into_iter().flatten() {
                set(port, "nodePort", None);
            }
        }
    }
    // Also of a service that has lost its addresses outside.
    if before == "LoadBalancer" && after != "LoadBalancer" {
        new["status"]["loadBalancer"] = json!({});
    }
    let (was, is) = (&old["spec"], &mut new["spec"]);
    let is_outside =
        |spec: &Value, kind: &str| on_nodes(kind) || spec["externalIPs"].as_array().is_some_and(|all| !all.is_empty());
    let mut of_type = Vec::new();
    if before == "LoadBalancer" && after != "LoadBalancer" {
        of_type.extend(["allocateLoadBalancerNodePorts", "healthCheckNodePort", "loadBalancerClass"]);
    }
    if is_outside(was, &before) && !is_outside(is, &after) {
        of_type.push("externalTrafficPolicy");
    }
    for field in of_type.into_iter().filter(|field| was[*field] == is[*field]).collect::<Vec<_>>() {
        set(is, field, None);
    }
}

/// Counts the templates of a daemon set. Upstream has a field for the number, which nobody sets: the annotation is how it is written.
fn count_template(old: &Value, new: &mut Value) {
    let known = old["metadata"]["annotations"][TEMPLATE_COUNT].as_str().and_then(|count| count.parse::<i64>().ok());
    let is_another = old["spec"]["template"] != new["spec"]["template"];
    let count = known.unwrap_or(0).wrapping_add(i64::from(is_another));
    new["metadata"]["annotations"][TEMPLATE_COUNT] = count.to_string().into();
}

/// A daemon set as it is sent: without a number it has none yet, and whoever sends it so has set that.
pub(super) fn say_no_template_count(resource: &Resource, sent: &Value, object: &mut Value) {
    if of(resource) == ("apps", "daemonsets") && sent["metadata"]["annotations"][TEMPLATE_COUNT].is_null() {
        object["metadata"]["annotations"][TEMPLATE_COUNT] = "0".into();
    }
}

/// Why the number of templates that a daemon set says is none.
pub(super) fn wrong_template_count(resource: &Resource, object: &Value) -> Option<String> {
    let said = object["metadata"]["annotations"][TEMPLATE_COUNT].as_str()?;
    let is_wrong = of(resource) == ("apps", "daemonsets") && said.parse::<i64>().is_err();
    is_wrong.then(|| format!("strconv.ParseInt: parsing {}: invalid syntax", go::quote(said)))
}

/// The version in which objects will be stored is one of those in which some are.
fn keep_stored_version(definition: &mut Value) {
    let versions = definition["spec"]["versions"].as_array();
    let name = versions
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone());
    if let (Some(name), Some(stored)) = (name, definition["status"]["storedVersions"].as_array_mut())
        && !stored.contains(&name)
    {
        stored.push(name);
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

fn changes_generation(resource: &Resource, old: &Value, new: &Value) -> bool {
    let ignored =
        |key: &str| key == "metadata" || (key == "status" && (resource.custom.is_none() || resource.has_status()));
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return false };
    let differs = |one: &Map<String, Value>, other: &Map<String, Value>| {
        one.iter().any(|(key, value)| !ignored(key) && other.get(key) != Some(value))
    };
    differs(old, new) || differs(new, old)
}
