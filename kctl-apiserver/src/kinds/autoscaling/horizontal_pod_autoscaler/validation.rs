//! Validation of `HorizontalPodAutoscaler` objects.
//!
//! Upstream: `pkg/apis/autoscaling/validation/validation.go`. Objects of version 1 are converted
//! before they get here.
//!
//! The error paths are those of version 2 for objects of both versions, as in
//! `spec.metrics[0].resource.target.type`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::{entries, resources},
};

/// Longest `stabilizationWindowSeconds`: one hour.
const WINDOW_SECONDS_MAX: i64 = 3600;
/// Longest `periodSeconds` of a scaling policy: half an hour.
const PERIOD_SECONDS_MAX: i64 = 1800;
/// The sources of metrics with the types that name them, in the order in which they are checked.
const SOURCES: &[(&str, &str)] = &[
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

/// Types of metrics, sorted as errors list them.
const TYPES: &[&str] = &["ContainerResource", "External", "Object", "Pods", "Resource"];

/// Validates an autoscaler (`ValidateHorizontalPodAutoscaler`).
///
/// | field | rule |
/// |---|---|
/// | `maxReplicas` | at least `minReplicas` |
/// | `scaleTargetRef` | kind, name, and an API group |
/// | `metrics` | see `one_metric` |
/// | `minReplicas: 0` | only with a metric of type Object or External: Pods that do not run report no metrics |
/// | `behavior.scaleUp`, `behavior.scaleDown` | see `scaling` |
///
/// A lower bound for the two counts is declared by the schema and is not repeated here.
pub(crate) fn autoscaler(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let (least, most) = (spec["minReplicas"].as_i64(), spec["maxReplicas"].as_i64().unwrap_or(0));
    if least.is_some_and(|least| most < least) {
        errors.invalid("spec.maxReplicas", &most.into(), "must be greater than or equal to `minReplicas`");
    }
    reference(&spec["scaleTargetRef"], "spec.scaleTargetRef", Group::Required, errors);
    let mut scales_to_none = false;
    for (index, metric) in entries(&spec["metrics"]) {
        scales_to_none |= ["Object", "External"].contains(&text(&metric["type"]));
        one_metric(metric, &format!("spec.metrics[{index}]"), errors);
    }
    if spec["minReplicas"] == 0 && !scales_to_none {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden("spec.metrics", detail);
    }
    for direction in ["scaleUp", "scaleDown"] {
        scaling(&spec["behavior"][direction], &format!("spec.behavior.{direction}"), errors);
    }
}

/// The group in the `apiVersion` of a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    /// For the scale target, unless it is a `ReplicationController`.
    Required,
    Optional,
}

/// Validates a reference to another object, of any version.
///
/// In the core group, only a `ReplicationController` has a scale subresource. Other targets need a group.
fn reference(target: &Value, path: &str, expected: Group, errors: &mut Errors) {
    for name in ["kind", "name"] {
        errors.required_name(&format!("{path}.{name}"), &target[name], NameRule::PathSegment);
    }
    let version = text(&target["apiVersion"]);
    let (group, _) = version.split_once('/').unwrap_or_default();
    let is_controller = target["kind"] == "ReplicationController";
    if version.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {version}");
        errors.invalid(&format!("{path}.apiVersion"), &version.into(), &detail);
    } else if expected == Group::Required && group.is_empty() && !is_controller {
        errors.invalid(&format!("{path}.apiVersion"), &version.into(), "apiVersion must specify API group");
    }
}

/// Validates that a metric has the one source that its type names, and validates that source.
///
/// Superfluous sources are `FieldValueForbidden`; only the first of several is validated.
fn one_metric(metric: &Value, path: &str, errors: &mut Errors) {
    let (kind, kind_path) = (text(&metric["type"]), format!("{path}.type"));
    if kind.is_empty() {
        errors.required(&kind_path, "must specify a metric source type");
    }
    errors.always_one_of(&kind_path, &metric["type"], TYPES);
    let given: Vec<&str> =
        SOURCES.iter().map(|(source, _)| *source).filter(|source| metric[*source].is_object()).collect();
    if let Some(first) = given.first() {
        source(first, &metric[*first], &format!("{path}.{first}"), errors);
    }
    let expected = SOURCES.iter().find(|(_, source_kind)| *source_kind == kind).map(|(source, _)| *source);
    if let Some(source) = expected.filter(|source| metric[*source].is_null()) {
        errors.required(&format!("{path}.{source}"), "must populate information for the given metric source");
    }
    if given.len() != 1 {
        for other in given.iter().filter(|source| Some(**source) != expected) {
            errors.forbidden(&format!("{path}.{other}"), "must populate the given metric source only");
        }
    }
}

/// Validates the source of a metric: its name, the object or container it is about, and its target.
///
/// | source | required |
/// |---|---|
/// | Resource | `name` |
/// | `ContainerResource` | `name` of a container's resource, and `container` |
/// | Object | `metric.name`, and kind and name of `describedObject` |
/// | Pods, External | `metric.name` |
fn source(kind: &str, source: &Value, path: &str, errors: &mut Errors) {
    let target = &source["target"];
    let target_path = format!("{path}.target");
    match kind {
        "resource" | "containerResource" => {
            if text(&source["name"]).is_empty() {
                errors.required(&format!("{path}.name"), "must specify a resource name");
            } else if kind == "containerResource" {
                resources::name_of_container(text(&source["name"]), &format!("{path}.name"), errors);
            }
            if kind == "containerResource" && text(&source["container"]).is_empty() {
                errors.required(&format!("{path}.container"), "must specify a container");
            } else if kind == "containerResource" {
                errors.name(&format!("{path}.container"), &source["container"], NameRule::Label);
            }
        }
        _ => {
            if kind == "object" {
                reference(&source["describedObject"], &format!("{path}.describedObject"), Group::Optional, errors);
            }
            let (name, path) = (&source["metric"]["name"], format!("{path}.metric.name"));
            if text(name).is_empty() {
                errors.required(&path, "must specify a metric name");
            } else {
                errors.name(&path, name, NameRule::PathSegment);
            }
        }
    }
    amounts(target, &target_path, errors);
    one_amount(kind, target, &target_path, errors);
}

/// Validates the type of a target and that its amounts are positive.
///
/// The type need not fit the amounts that are set. `one_amount` decides which amounts are required.
fn amounts(target: &Value, path: &str, errors: &mut Errors) {
    let kind = text(&target["type"]);
    if kind.is_empty() {
        errors.required(&format!("{path}.type"), "must specify a metric target type");
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        errors.invalid(&format!("{path}.type"), &kind.into(), "must be either Utilization, Value, or AverageValue");
    }
    for name in ["value", "averageValue"] {
        if resources::size(&target[name]).is_some_and(|size| size <= 0) {
            errors.invalid(&format!("{path}.{name}"), &target[name], "must be positive");
        }
    }
    let share = &target["averageUtilization"];
    if share.as_i64().is_some_and(|share| share < 1) {
        errors.invalid(&format!("{path}.averageUtilization"), share, "must be greater than 0");
    }
}

/// Validates that a target has the amounts that its source needs.
///
/// | source | amounts |
/// |---|---|
/// | Object | `value` or `averageValue`, or both |
/// | External | exactly one of `value` and `averageValue` |
/// | Pods | `averageValue` |
/// | Resource, `ContainerResource` | exactly one of `averageUtilization` and `averageValue` |
fn one_amount(kind: &str, target: &Value, path: &str, errors: &mut Errors) {
    let has = |name: &str| !target[name].is_null();
    let average_path = format!("{path}.averageValue");
    match kind {
        "object" if !has("value") && !has("averageValue") => {
            errors.required(&average_path, "must set either a target value or averageValue");
        }
        "external" if !has("value") && !has("averageValue") => {
            errors.required(&average_path, "must set either a target value for metric or a per-pod target");
        }
        "external" if has("value") && has("averageValue") => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.forbidden(&format!("{path}.value"), detail);
        }
        "pods" if !has("averageValue") => errors.required(&average_path, "must specify a positive target averageValue"),
        "resource" | "containerResource" => match (has("averageUtilization"), has("averageValue")) {
            (false, false) => {
                let detail = "must set either a target raw value or a target utilization";
                errors.required(&format!("{path}.averageUtilization"), detail);
            }
            (true, true) => {
                errors.forbidden(&average_path, "may not set both a target raw value and a target utilization");
            }
            _ => {}
        },
        _ => {}
    }
}

/// Validates the rules of one direction (`validateScalingRules`); absent rules are valid.
///
/// At least one policy is required. Each has a positive `value` and a period of 1 to 1,800 seconds.
/// The window has 0 to 3,600 seconds, and `tolerance` is not negative.
fn scaling(rules: &Value, path: &str, errors: &mut Errors) {
    if rules.is_null() {
        return;
    }
    let (window, window_path) = (&rules["stabilizationWindowSeconds"], format!("{path}.stabilizationWindowSeconds"));
    if window.as_i64().is_some_and(|seconds| seconds < 0) {
        errors.invalid(&window_path, window, "must be greater than or equal to zero");
    }
    if window.as_i64().is_some_and(|seconds| seconds > WINDOW_SECONDS_MAX) {
        errors.invalid(&window_path, window, &format!("must be less than or equal to {WINDOW_SECONDS_MAX}"));
    }
    errors.one_of(&format!("{path}.selectPolicy"), &rules["selectPolicy"], &["Disabled", "Max", "Min"]);
    let policies_path = format!("{path}.policies");
    if entries(&rules["policies"]).next().is_none() {
        errors.required(&policies_path, "must specify at least one Policy");
    }
    for (index, policy) in entries(&rules["policies"]) {
        let (path, period) = (format!("{policies_path}[{index}]"), policy["periodSeconds"].as_i64().unwrap_or(0));
        errors.always_one_of(&format!("{path}.type"), &policy["type"], &["Percent", "Pods"]);
        for name in ["value", "periodSeconds"] {
            let number = policy[name].as_i64().unwrap_or(0);
            if number <= 0 {
                errors.invalid(&format!("{path}.{name}"), &number.into(), "must be greater than zero");
            }
        }
        if period > PERIOD_SECONDS_MAX {
            let detail = format!("must be less than or equal to {PERIOD_SECONDS_MAX}");
            errors.invalid(&format!("{path}.periodSeconds"), &period.into(), &detail);
        }
    }
    if resources::size(&rules["tolerance"]).is_some_and(|size| size < 0) {
        errors.invalid(&format!("{path}.tolerance"), &rules["tolerance"], "must be greater than or equal to 0");
    }
}
