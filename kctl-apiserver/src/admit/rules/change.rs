//! What may not change in objects of the built-in kinds.

use serde_json::Value;

use super::{Errors, entries, selector};
use crate::{kinds::Resource, status::Cause};

/// What is wrong with a change of an object of a built-in kind.
pub(crate) fn forbidden_changes(resource: &Resource, old: &Value, new: &Value) -> Vec<Cause> {
    let mut errors = Errors::default();
    match (resource.of.group.as_str(), resource.of.resource.as_str()) {
        ("", "pods") => pod(old, new, &mut errors),
        ("", "configmaps") => config(old, new, &mut errors),
        ("", "secrets") => {
            keeps("type", &old["type"], &new["type"], &mut errors);
            config(old, new, &mut errors);
        }
        ("", "services") => service(old, new, &mut errors),
        ("", "persistentvolumeclaims") => claim(old, new, &mut errors),
        ("apps", "deployments" | "replicasets" | "daemonsets") => selector_stays(old, new, &mut errors),
        ("apps", "controllerrevisions") => keeps("data", &old["data"], &new["data"], &mut errors),
        ("discovery.k8s.io", "endpointslices") => {
            keeps("addressType", &old["addressType"], &new["addressType"], &mut errors);
        }
        ("storage.k8s.io", "storageclasses") => {
            for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
                keeps(field, &old[field], &new[field], &mut errors);
            }
        }
        ("scheduling.k8s.io", "priorityclasses") if old["value"] != new["value"] => {
            errors.forbidden("value", "may not be changed in an update.");
        }
        ("apps", "statefulsets") => stateful_set(old, new, &mut errors),
        ("batch", "jobs") => job(old, new, &mut errors),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") if old["roleRef"] != new["roleRef"] => {
            let role = &new["roleRef"];
            let shown =
                format!("{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}", role["apiGroup"], role["kind"], role["name"]);
            errors.shown("roleRef", &shown, "cannot change roleRef");
        }
        _ => {}
    }
    errors.into_causes()
}

fn keeps(field: &str, old: &Value, new: &Value, errors: &mut Errors) {
    if old != new {
        errors.invalid(field, new, "field is immutable");
    }
}

fn selector_stays(old: &Value, new: &Value, errors: &mut Errors) {
    let (old, new) = (&old["spec"]["selector"], &new["spec"]["selector"]);
    if old != new {
        errors.shown("spec.selector", &selector::shown(new), "field is immutable");
    }
}

fn config(old: &Value, new: &Value, errors: &mut Errors) {
    if old["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if new["immutable"] != true {
        errors.forbidden("immutable", detail);
    }
    for part in ["data", "binaryData"] {
        if old[part] != new[part] {
            errors.forbidden(part, detail);
        }
    }
}

fn service(old: &Value, new: &Value, errors: &mut Errors) {
    let external = |service: &Value| service["spec"]["type"] == "ExternalName";
    let (known, given) = (&old["spec"]["clusterIPs"], &new["spec"]["clusterIPs"]);
    if !external(old) && !external(new) && known.is_array() && known[0] != given[0] {
        errors.invalid("spec.clusterIPs[0]", given, "may not change once set");
    }
}

fn claim(old: &Value, new: &Value, errors: &mut Errors) {
    let without_requests = |claim: &Value| {
        let mut spec = claim["spec"].clone();
        let is_bound = claim["status"]["phase"] == "Bound";
        let may_change: &[&str] = if is_bound { &["resources", "volumeAttributesClassName"] } else { &[] };
        for name in may_change.iter().chain(&["volumeName"]) {
            if let Some(spec) = spec.as_object_mut() {
                spec.remove(*name);
            }
        }
        spec
    };
    if without_requests(old) != without_requests(new) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                      bound claims";
        errors.forbidden("spec", detail);
    }
}

fn stateful_set(old: &Value, new: &Value, errors: &mut Errors) {
    const FREE: &[&str] = &[
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let fixed = |set: &Value| {
        let mut spec = set["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|name, _| !FREE.contains(&name.as_str()));
        }
        spec
    };
    if fixed(old) != fixed(new) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        errors.forbidden("spec", detail);
    }
}

fn job(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    keeps("spec.completions", &was["completions"], &is["completions"], errors);
    if was["selector"] != is["selector"] {
        errors.shown("spec.selector", &selector::shown(&is["selector"]), "field is immutable");
    }
    // A job that has not started may still be placed.
    if was["template"] != is["template"] && !(was["suspend"] == true && old["status"]["startTime"].is_null()) {
        errors.invalid("spec.template", &is["template"], "field is immutable");
    }
    keeps("spec.completionMode", &was["completionMode"], &is["completionMode"], errors);
}

fn pod(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    for list in ["containers", "initContainers"] {
        if entries(&was[list]).count() != entries(&is[list]).count() {
            let what = if list == "containers" { "containers" } else { "init containers" };
            errors.forbidden(&format!("spec.{list}"), &format!("pod updates may not add or remove {what}"));
            return;
        }
    }
    let (deadline, earlier) = (&is["activeDeadlineSeconds"], was["activeDeadlineSeconds"].as_i64());
    if let Some(earlier) = earlier {
        match deadline.as_i64() {
            Some(later) if later > earlier => {
                let detail = "must be less than or equal to previous value";
                errors.invalid("spec.activeDeadlineSeconds", deadline, detail);
                return;
            }
            None => {
                errors.invalid(
                    "spec.activeDeadlineSeconds",
                    deadline,
                    "must not update from a positive integer to nil value",
                );
            }
            Some(_) => {}
        }
    }
    if settled(was, was, is) != settled(is, was, is) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
                      to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
                      was previously negative)";
        errors.forbidden("spec", detail);
    }
}

/// One of two specs of a pod without what may change from the old to the new one.
fn settled(spec: &Value, old: &Value, new: &Value) -> Value {
    let mut spec = spec.clone();
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            container["image"] = Value::Null;
        }
    }
    let mut free = vec!["activeDeadlineSeconds"];
    let known = |toleration: &Value| entries(&new["tolerations"]).any(|(_, new)| new == toleration);
    if entries(&old["tolerations"]).all(|(_, toleration)| known(toleration)) {
        free.push("tolerations");
    }
    if entries(&old["schedulingGates"]).next().is_some() {
        free.extend(["schedulingGates", "nodeSelector", "affinity"]);
    }
    let period = "terminationGracePeriodSeconds";
    if old[period].as_i64().is_some_and(|seconds| seconds < 0) && new[period] == 1 {
        free.push(period);
    }
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|name, _| !free.contains(&name.as_str()));
    }
    spec
}
