//! Validation of `HorizontalPodAutoscaler` objects.
//!
//! Upstream: `pkg/apis/autoscaling/validation/validation.go`. Objects of version 1 are converted
//! before they get here.
//!
//! Objects of both versions have the error paths of version 2, as in `spec.metrics[0].resource.target.type`.

use serde_json::Value;

use crate::{field::Field, field_errors::Errors, names::NameRule, validation::resources};

/// Longest `stabilizationWindowSeconds`: one hour.
const WINDOW_SECONDS_MAX: i64 = 3600;
/// Longest `periodSeconds` of a scaling policy: half an hour.
const PERIOD_SECONDS_MAX: i64 = 1800;
/// The sources of metrics with the types that name them, in the order in which they are checked.
const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

/// Validates an autoscaler (`ValidateHorizontalPodAutoscaler`).
///
/// `minReplicas: 0` needs a metric of type Object or External, because Pods that do not run report no metrics. Tags
/// of the API are the lower bounds of the two counts.
pub(crate) fn validate_autoscaler(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let (least, most, metrics) = (&spec["minReplicas"], spec.at("maxReplicas"), spec.at("metrics"));
    let is_less = least.as_i64().is_some_and(|least| most.as_i64().unwrap_or(0) < least);
    most.invalid_if(is_less, "must be greater than or equal to `minReplicas`");
    validate_reference(&spec.at("scaleTargetRef"), Group::Required);
    metrics.items().for_each(|metric| validate_metric(&metric));
    let scales_to_none = metrics.items().any(|metric| metric["type"] == "Object" || metric["type"] == "External");
    metrics.forbidden_if(*least == 0 && !scales_to_none, "`minReplicas: 0` needs an Object or External metric");
    spec.at("behavior").check_children(&["scaleUp", "scaleDown"], validate_scaling);
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
fn validate_reference(target: &Field<'_>, expected: Group) {
    target.check_children(&["kind", "name"], |field| field.required_name(NameRule::PathSegment));
    let version = target.at("apiVersion");
    let (group, _) = version.text().split_once('/').unwrap_or_default();
    let needs_group = expected == Group::Required && target["kind"] != "ReplicationController";
    let is_wrong = version.text().matches('/').count() > 1 || (needs_group && group.is_empty());
    version.invalid_if(is_wrong, "must be an API group and a version, such as apps/v1");
}

/// Validates that a metric has the one source that its type names, and validates that source.
///
/// Superfluous sources are `FieldValueForbidden`; only the first of several is validated.
fn validate_metric(metric: &Field<'_>) {
    let kind = metric.at("type");
    kind.required_if(kind.is_empty());
    kind.always_one_of(&SOURCES.map(|(_, kind)| kind));
    let is_given = |name: &str| metric[name].is_object();
    if let Some((name, _)) = SOURCES.iter().find(|(name, _)| is_given(name)) {
        validate_source(name, &metric.at(name));
    }
    let has_several = SOURCES.iter().filter(|(name, _)| is_given(name)).count() > 1;
    for (name, source_kind) in SOURCES {
        let (source, is_expected) = (metric.at(name), *kind == source_kind);
        source.required_if(is_expected && source.is_null());
        source.forbidden_if(!is_expected && has_several && is_given(name), "is not the source that `type` names");
    }
}

/// Validates the source of a metric: its name, the object or container it is about, and its target.
fn validate_source(kind: &str, source: &Field<'_>) {
    let (name, container) = (source.at("name"), source.at("container"));
    match kind {
        "resource" => name.required_if(name.is_empty()),
        "containerResource" => {
            if name.require_value() {
                resources::validate_container_resource_name(name.text(), &name);
            }
            container.required_name(NameRule::Label);
        }
        _ => source.at("metric").at("name").required_name(NameRule::PathSegment),
    }
    if kind == "object" {
        validate_reference(&source.at("describedObject"), Group::Optional);
    }
    validate_amounts(&source.at("target"));
    require_amounts(kind, &source.at("target"));
}

/// Validates the type of a target and that its amounts are positive.
///
/// The type need not fit the amounts that are set. `require_amounts` decides which amounts are required.
fn validate_amounts(target: &Field<'_>) {
    let kind = target.at("type");
    kind.required_if(kind.is_empty());
    let is_known = ["Utilization", "Value", "AverageValue"].contains(&kind.text());
    kind.invalid_if(!is_known, "must be Utilization, Value or AverageValue");
    target.check_children(&["value", "averageValue"], |amount| {
        amount.invalid_if(resources::size(amount).is_some_and(|size| size <= 0), "must be positive");
    });
    target.at("averageUtilization").at_least(1);
}

/// Validates that a target has the amounts that its source needs.
fn require_amounts(kind: &str, target: &Field<'_>) {
    let [value, average, share] = ["value", "averageValue", "averageUtilization"].map(|name| target.at(name));
    let (has_value, has_average, has_share) = (!value.is_null(), !average.is_null(), !share.is_null());
    match kind {
        "pods" => average.required_if(!has_average),
        "object" | "external" => {
            average.required_if(!has_value && !has_average);
            let detail = "may not be set together with `averageValue`";
            value.forbidden_if(kind == "external" && has_value && has_average, detail);
        }
        _ => {
            share.required_if(!has_share && !has_average);
            average.forbidden_if(has_share && has_average, "may not be set together with `averageUtilization`");
        }
    }
}

/// Validates the rules of one direction (`validateScalingRules`); absent rules are valid.
fn validate_scaling(rules: &Field<'_>) {
    if rules.is_null() {
        return;
    }
    rules.at("stabilizationWindowSeconds").in_range(0, WINDOW_SECONDS_MAX);
    rules.at("selectPolicy").one_of(&["Disabled", "Max", "Min"]);
    let (policies, tolerance) = (rules.at("policies"), rules.at("tolerance"));
    policies.required_if(policies.is_empty());
    for policy in policies.items() {
        policy.at("type").always_one_of(&["Percent", "Pods"]);
        let [value, period] = ["value", "periodSeconds"].map(|name| Value::from(policy[name].as_i64().unwrap_or(0)));
        policy.at_with("value", &value).at_least(1);
        policy.at_with("periodSeconds", &period).in_range(1, PERIOD_SECONDS_MAX);
    }
    let is_negative = resources::size(&tolerance).is_some_and(|size| size < 0);
    tolerance.invalid_if(is_negative, "must be greater than or equal to 0");
}
