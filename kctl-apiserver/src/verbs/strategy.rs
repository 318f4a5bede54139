//! What differs by kind when objects are written: generation, status, names, allocated values.

use serde_json::{Map, Value, json};

use crate::{crd, kinds::Resource, store::State};

/// Built-in resources whose `metadata.generation` counts changes, as the real server was seen to do it.
const COUNTED: &[(&str, &str)] = &[
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
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
    ("scheduling.k8s.io", "priorityclasses"),
];

/// Resources whose objects are answered to a delete that removes them at once; the others are answered a Status.
pub(super) fn answers_deleted(resource: &Resource) -> bool {
    const OBJECT: &[&str] = &[
        "limitranges",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ];
    let name = resource.of.resource.as_str();
    (resource.of.group.is_empty() && OBJECT.contains(&name))
        || (resource.of.group == "storage.k8s.io" && name == "storageclasses")
}

pub(super) fn counts_generations(resource: &Resource) -> bool {
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    resource.custom.is_some() || COUNTED.contains(&of)
}

/// Makes an object ready to be stored for the first time.
pub(super) fn prepare_create(state: &mut State, resource: &Resource, object: &mut Value) {
    let resets_status = resource.has_status();
    if let Value::Object(map) = object {
        if resets_status && !keeps_status(resource) {
            map.remove("status");
        }
        let Some(Value::Object(meta)) = map.get_mut("metadata") else { return };
        for server_owned in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"] {
            meta.remove(server_owned);
        }
        meta.insert("uid".into(), state.chance.uid().into());
        meta.insert("creationTimestamp".into(), state.clock.seconds().into());
        if counts_generations(resource) {
            meta.insert("generation".into(), 1.into());
        }
    }
    match (resource.of.group.as_str(), resource.of.resource.as_str()) {
        ("", "services") => allocate_address(state, object),
        ("", "pods") => {
            let class = qos_class(object);
            object["status"] = json!({ "phase": "Pending", "qosClass": class });
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
        ("", "namespaces") => {
            object["status"] = json!({ "phase": "Active" });
            if object["spec"]["finalizers"].is_null() {
                object["spec"]["finalizers"] = json!(["kubernetes"]);
            }
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => establish(state, object),
        ("", "nodes") if object["spec"]["taints"].is_null() => {
            object["spec"]["taints"] = json!([{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }]);
        }
        ("batch", "jobs") => select_own_pods(object),
        ("admissionregistration.k8s.io" | "certificates.k8s.io" | "apps" | "batch" | "policy", _)
            if resource.has_status() =>
        {
            object["status"] = json!({});
        }
        ("", "persistentvolumes" | "persistentvolumeclaims") => {
            protect_storage(resource, object);
            if resource.of.resource == "persistentvolumes" {
                object["status"]["lastPhaseTransitionTime"] = state.clock.seconds().into();
            }
        }
        ("coordination.k8s.io", "leases") => drop_disabled(object),
        _ => {}
    }
}

/// The selector and the labels by which a job knows its pods (`generateSelector`).
fn select_own_pods(job: &mut Value) {
    job["status"] = json!({});
    if job["spec"]["manualSelector"] == true {
        return;
    }
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
    // A job without labels of its own has those of its pods.
    let template = job["spec"]["template"]["metadata"]["labels"].clone();
    let own = &mut job["metadata"]["labels"];
    if own.as_object().is_none_or(Map::is_empty) {
        *own = template;
    }
}

/// What the admission plugin `StorageObjectInUseProtection` adds.
fn protect_storage(resource: &Resource, object: &mut Value) {
    let name = if resource.of.resource == "persistentvolumes" { "pv" } else { "pvc" };
    let finalizer = Value::from(format!("kubernetes.io/{name}-protection"));
    match &mut object["metadata"]["finalizers"] {
        Value::Array(list) if list.contains(&finalizer) => {}
        Value::Array(list) => list.push(finalizer),
        none => *none = json!([finalizer]),
    }
    object["status"] = json!({ "phase": "Pending" });
}

/// Fields of leases that belong to a feature which is off by default: `CoordinatedLeaderElection`.
fn drop_disabled(lease: &mut Value) {
    for field in ["strategy", "preferredHolder"] {
        set(&mut lease["spec"], field, None);
    }
}

/// Nodes come with the status that their kubelet has found.
fn keeps_status(resource: &Resource) -> bool {
    resource.custom.is_none() && resource.of.group.is_empty() && resource.of.resource == "nodes"
}

fn allocate_address(state: &mut State, object: &mut Value) {
    let spec = &mut object["spec"];
    if spec["type"] == "ExternalName" || spec["clusterIP"].as_str().is_some_and(|given| !given.is_empty()) {
        return;
    }
    state.n_addresses += 1;
    let [.., second, third, fourth] = state.n_addresses.to_be_bytes();
    let address = format!("10.{}.{third}.{fourth}", 96 + second % 16);
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = address.into();
}

/// The class by which the kubelet evicts (`pkg/apis/core/v1/helper/qos`).
fn qos_class(pod: &Value) -> &'static str {
    let containers = || {
        ["containers", "initContainers"].into_iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
    };
    let empty = Map::new();
    let amounts = |container: &Value, of: &str| container["resources"][of].as_object().unwrap_or(&empty).clone();
    if containers()
        .all(|container| amounts(container, "limits").is_empty() && amounts(container, "requests").is_empty())
    {
        return "BestEffort";
    }
    let guaranteed = containers().all(|container| {
        let (limits, requests) = (amounts(container, "limits"), amounts(container, "requests"));
        ["cpu", "memory"].iter().all(|name| limits.contains_key(*name))
            && requests.iter().all(|(name, amount)| limits.get(name) == Some(amount))
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

/// A definition is served at once: it gets the status that the real server writes a moment later.
fn establish(state: &State, definition: &mut Value) {
    crd::default_definition(definition);
    crd::accept_names(definition, &state.clock.seconds());
    definition["metadata"]["finalizers"] = json!([crate::controllers::CLEANUP]);
}

/// Carries over what a write of the object or of its status may not touch, and counts the generation.
pub(super) fn prepare_update(resource: &Resource, subresource: &str, old: &Value, new: &mut Value) {
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
                // A status write may annotate; owners and, except for pods, labels are not its business.
                let kept: &[&str] =
                    if resource.of.resource == "pods" { &["ownerReferences"] } else { &["ownerReferences", "labels"] };
                for field in kept {
                    set(&mut new["metadata"], field, old["metadata"].get(*field).cloned());
                }
            }
            set(new, "status", status);
        }
        "" if resource.has_status() => set(new, "status", old.get("status").cloned()),
        _ => {}
    }
    match of {
        ("coordination.k8s.io", "leases") => drop_disabled(new),
        ("certificates.k8s.io", "certificatesigningrequests") => keep_request(subresource, old, new),
        ("", "services") => keep_addresses(old, new),
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
        accept_names(new);
    }
    if of == ("apps", "daemonsets") && old["spec"]["template"] != new["spec"]["template"] {
        count_template(old, new);
    }
    let annotated = of == ("apps", "deployments")
        && subresource.is_empty()
        && old["metadata"]["annotations"] != new["metadata"]["annotations"];
    if counts_generations(resource) && (annotated || changes_generation(resource, old, new)) {
        new["metadata"]["generation"] = (meta["generation"].as_i64().unwrap_or(0) + 1).into();
    }
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

/// A daemon set counts the changes of its template in an annotation.
fn count_template(old: &Value, new: &mut Value) {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    let known = old["metadata"]["annotations"][COUNT].as_str().and_then(|count| count.parse::<i64>().ok());
    new["metadata"]["annotations"][COUNT] = (known.unwrap_or(0) + 1).to_string().into();
}

fn accept_names(definition: &mut Value) {
    let names = definition["spec"]["names"].clone();
    definition["status"]["acceptedNames"] = names;
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

fn set(object: &mut Value, field: &str, value: Option<Value>) {
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
