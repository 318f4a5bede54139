//! Validation of changes in objects of the built-in kinds.

pub(crate) mod volume;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Errors, entries, placement, text};

/// The role of a binding stays.
pub(crate) fn role_stays(old: &Value, new: &Value, errors: &mut Errors) {
    if old["roleRef"] != new["roleRef"] {
        errors.invalid("roleRef", &new["roleRef"], "cannot change roleRef");
    }
}

pub(crate) fn keeps(field: &str, old: &Value, new: &Value, errors: &mut Errors) {
    if old != new {
        errors.invalid(field, new, "field is immutable");
    }
}

pub(crate) fn selector_stays(old: &Value, new: &Value, errors: &mut Errors) {
    let (old, new) = (&old["spec"]["selector"], &new["spec"]["selector"]);
    if old != new {
        errors.invalid("spec.selector", new, "field is immutable");
    }
}

pub(crate) fn config(old: &Value, new: &Value, errors: &mut Errors) {
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

/// Which scopes a quota has, in whatever order, and however often.
pub(crate) fn scopes_stay(old: &Value, new: &Value, errors: &mut Errors) {
    let all = |scopes| -> BTreeSet<&str> { entries(scopes).map(|(_, scope)| text(scope)).collect() };
    if all(old) != all(new) {
        errors.invalid("spec.scopes", new, "field is immutable");
    }
}

pub(crate) fn claim(old: &Value, new: &Value, errors: &mut Errors) {
    let without_requests = |claim: &Value| {
        let mut spec = claim["spec"].clone();
        let is_bound = claim["status"]["phase"] == "Bound";
        let may_change: &[&str] = if is_bound { &["resources", "volumeAttributesClassName"] } else { &[] };
        for name in may_change {
            if let Some(spec) = spec.as_object_mut() {
                spec.remove(*name);
            }
        }
        spec
    };
    let (mut was, is) = (without_requests(old), without_requests(new));
    // Whoever binds it names the volume, once.
    if text(&was["volumeName"]).is_empty() && is["volumeName"].is_string() {
        was["volumeName"] = is["volumeName"].clone();
    }
    if was["storageClassName"].is_null() && may_get_class(old, &is["storageClassName"]) {
        was["storageClassName"] = is["storageClassName"].clone();
    }
    if was != is {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                      bound claims";
        errors.forbidden("spec", detail);
    }
}

/// A claim without a class may get one later, but none beside that of its annotation
/// (`validateStorageClassUpgradeFromNil`).
fn may_get_class(old: &Value, class: &Value) -> bool {
    let named = old["metadata"]["annotations"].get(crate::admit::CLASS_OF_CLAIM);
    class.is_string() && named.is_none_or(|named| named == class)
}

pub(crate) fn stateful_set(old: &Value, new: &Value, errors: &mut Errors) {
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

pub(crate) fn job(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    let at = "spec.completions";
    if is["completionMode"] != "Indexed" {
        keeps(at, &was["completions"], &is["completions"], errors);
    } else if was["completions"] != is["completions"]
        && !is["completions"].is_null()
        && is["completions"] != is["parallelism"]
    {
        errors.invalid(at, &is["completions"], "can only be modified in tandem with spec.parallelism");
    }
    if was["selector"] != is["selector"] {
        errors.invalid("spec.selector", &is["selector"], "field is immutable");
    }
    template_of_job(old, new, errors);
    keeps("spec.completionMode", &was["completionMode"], &is["completionMode"], errors);
    for name in ["podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        keeps(&format!("spec.{name}"), &was[name], &is[name], errors);
    }
}

/// A job that has not started may still be placed, and given other resources.
fn template_of_job(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"]["template"], &new["spec"]["template"]);
    let is_suspended = old["spec"]["suspend"] == true;
    if !is_suspended || !old["status"]["startTime"].is_null() {
        return keeps("spec.template", was, is, errors);
    }
    let fixed = |template: &Value| {
        let mut spec = template["spec"].clone();
        for name in ["nodeSelector", "tolerations", "schedulingGates"] {
            spec[name] = Value::Null;
        }
        spec["affinity"]["nodeAffinity"] = Value::Null;
        for list in ["containers", "initContainers"] {
            spec[list].as_array_mut().into_iter().flatten().for_each(|container| container["resources"] = Value::Null);
        }
        spec
    };
    if fixed(was) != fixed(is) {
        errors.invalid("spec.template.spec", &is["spec"], "field is immutable");
    }
}

pub(crate) fn pod(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    for list in ["containers", "initContainers"] {
        if entries(&was[list]).count() != entries(&is[list]).count() {
            errors.forbidden(&format!("spec.{list}"), "pod updates may not add or remove containers");
            return;
        }
        for (index, container) in entries(&is[list]) {
            let (at, image) = (format!("spec.{list}[{index}].image"), text(&container["image"]));
            if image.is_empty() {
                errors.required(&at, "");
            }
            if image.trim() != image {
                errors.invalid(&at, &image.into(), "must not have leading or trailing whitespace");
            }
        }
    }
    let (deadline, earlier) = (&is["activeDeadlineSeconds"], was["activeDeadlineSeconds"].as_i64());
    if deadline.as_i64().is_some_and(|deadline| deadline < 0) {
        return errors.in_range("spec.activeDeadlineSeconds", deadline, 0, i64::from(i32::MAX));
    }
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
    tolerations_stay(was, is, errors);
    gates_go(was, is, errors);
    placement::narrows(was, is, errors);
    if was != is && settled(was, was, is) != settled(is, was, is) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
                      to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
                      was previously negative)";
        errors.forbidden("spec", detail);
    }
}

fn tolerations_stay(was: &Value, is: &Value, errors: &mut Errors) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        toleration["tolerationSeconds"] = Value::Null;
        toleration
    };
    let is_kept =
        |old: &Value| entries(&is["tolerations"]).any(|(_, new)| without_seconds(new) == without_seconds(old));
    if !entries(&was["tolerations"]).all(|(_, old)| is_kept(old)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        return errors.forbidden("spec.tolerations", detail);
    }
    super::affinity::tolerations(&is["tolerations"], "spec.tolerations", errors);
}

fn gates_go(was: &Value, is: &Value, errors: &mut Errors) {
    for (index, gate) in entries(&is["schedulingGates"]) {
        if !entries(&was["schedulingGates"]).any(|(_, old)| old["name"] == gate["name"]) {
            let name = text(&gate["name"]);
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&format!("spec.schedulingGates[{index}].name"), &detail);
        }
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
    // What is told of tolerations and gates is told of them alone.
    let mut free = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    if entries(&old["schedulingGates"]).next().is_some() {
        placement::forget(&mut spec, old, new);
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
