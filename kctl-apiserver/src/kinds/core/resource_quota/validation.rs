//! Validation of `ResourceQuota` and `LimitRange` objects.
//!
//! Upstream: `ValidateResourceQuota` and `ValidateLimitRange` in
//! `pkg/apis/core/validation/validation.go`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    quantity,
    validation::{entries, resources},
};

/// All scopes of a quota. A scope limits the quota to some objects, such as Pods of a priority
/// class.
const SCOPES: &[&str] = &[
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

/// Scopes that a quota cannot have together.
const CONFLICTS: &[[&str; 2]] = &[["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
/// Resources of Pods that quotas count, to which most scopes apply.
pub(crate) const OF_PODS: &[&str] = &[
    "pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// Validates the status (`ValidateResourceQuotaStatusUpdate`).
pub(crate) fn status(object: &Value, errors: &mut Errors) {
    for part in ["hard", "used"] {
        for (name, amount) in pairs(&object["status"][part]) {
            counted(name, amount, &format!("status.{part}[{name}]"), errors);
        }
    }
}

/// Validates the name and the amount of a counted resource.
///
/// A name without a domain must be a standard resource. `storage` is not: a quota has
/// `requests.storage`.
fn counted(name: &str, amount: &Value, path: &str, errors: &mut Errors) {
    resources::known_name(name, path, errors);
    // Storage is limited as `requests.storage`, because only claims request it.
    if !name.contains('/') && (!resources::is_standard(name) || name == "storage") {
        errors.invalid(path, &name.into(), "must be a standard resource for quota");
    }
    resources::value(name, amount, path, errors);
}

/// Validates a quota: its amounts, `spec.scopes` and `spec.scopeSelector`.
pub(crate) fn quota(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    for (name, amount) in pairs(&spec["hard"]) {
        counted(name, amount, &format!("spec.hard[{name}]"), errors);
    }
    let (scopes, path) = (&spec["scopes"], "spec.scopes");
    for (_, scope) in entries(scopes) {
        if !SCOPES.contains(&text(scope)) {
            errors.invalid(path, scopes, "unsupported scope");
        }
        if let Some(resource) = unscoped(spec, text(scope)).next() {
            errors.invalid(path, scopes, &format!("{scope} does not apply to {resource}"));
        }
    }
    let all: Vec<&str> = entries(scopes).map(|(_, scope)| text(scope)).collect();
    conflicts(&all, scopes, errors);
    scope_selector(spec, errors);
}

/// Iterates over the standard resources of a quota to which a scope does not apply.
///
/// | scope | applies to |
/// |---|---|
/// | `BestEffort` | `pods`: such Pods request nothing else |
/// | `VolumeAttributesClass` | claims and their storage |
/// | others | `OF_PODS` |
fn unscoped<'a>(spec: &'a Value, scope: &'a str) -> impl Iterator<Item = &'a str> {
    let is_about = move |name: &str| match scope {
        "BestEffort" => name == "pods",
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            OF_PODS.contains(&name)
        }
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&name),
        _ => true,
    };
    pairs(&spec["hard"]).map(|(name, _)| name).filter(move |name| resources::is_standard(name) && !is_about(name))
}

/// Reports scopes that exclude each other at `spec.scopes`, even if they are from the scope
/// selector.
fn conflicts(all: &[&str], shown: &Value, errors: &mut Errors) {
    if CONFLICTS.iter().any(|pair| pair.iter().all(|scope| all.contains(scope))) {
        errors.invalid("spec.scopes", shown, "conflicting scopes");
    }
}

/// Validates `spec.scopeSelector`.
///
/// Scopes without values accept only the operator `Exists`. `PriorityClass` and `VolumeAttributesClass` also accept
/// `In` and `NotIn` with values, and `DoesNotExist`.
fn scope_selector(spec: &Value, errors: &mut Errors) {
    /// Scopes without values.
    const EXISTS: &[&str] =
        &["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];
    let (path, mut all) = ("spec.scopeSelector.matchExpressions", Vec::new());
    for (_, requirement) in entries(&spec["scopeSelector"]["matchExpressions"]) {
        let (scope, operator) = (text(&requirement["scopeName"]), text(&requirement["operator"]));
        let (values, values_path) = (&requirement["values"], format!("{path}.values"));
        if !SCOPES.contains(&scope) {
            errors.invalid(&format!("{path}.scopeName"), &scope.into(), "unsupported scope");
        }
        if unscoped(spec, scope).next().is_some() {
            errors.invalid(path, &spec["scopeSelector"], "unsupported scope applied to resource");
        }
        if EXISTS.contains(&scope) && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid(&format!("{path}.operator"), &operator.into(), detail);
        }
        let has_values = entries(values).next().is_some();
        match operator {
            "In" | "NotIn" if !has_values => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.required(&values_path, detail);
            }
            "Exists" | "DoesNotExist" if has_values => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.invalid(&values_path, values, detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.invalid(&format!("{path}.operator"), &operator.into(), "not a valid selector operator"),
        }
        all.push(scope);
    }
    conflicts(&all, &spec["scopes"], errors);
}

/// Validates a `LimitRange`: types, names of resources, and amounts that fit each other.
///
/// Types are unique. A type is a standard one, or has a domain for objects of other APIs.
///
/// ```text
/// limits:
/// - type: Container
///   min: {cpu: 100m}
///   defaultRequest: {cpu: 200m}
///   default: {cpu: 500m}
///   max: {cpu: "2"}
///   maxLimitRequestRatio: {cpu: "10"}
/// ```
///
/// The amounts of one resource must increase in this order: `min`, `defaultRequest`, `default`,
/// `max`.
pub(crate) fn limits(object: &Value, errors: &mut Errors) {
    /// Standard types of limits.
    const KINDS: &[&str] = &["Pod", "Container", "PersistentVolumeClaim"];
    let mut seen = Vec::new();
    for (index, limit) in entries(&object["spec"]["limits"]) {
        let (path, kind) = (format!("spec.limits[{index}]"), text(&limit["type"]));
        let kind_path = format!("{path}.type");
        let before = errors.len();
        errors.qualified_name(&kind_path, kind);
        if errors.len() == before && !kind.contains('/') && !KINDS.contains(&kind) {
            errors.invalid(&kind_path, &kind.into(), "must be a standard limit type or fully qualified");
        }
        if seen.contains(&kind) {
            errors.duplicate(&kind_path);
        }
        seen.push(kind);
        names_of_limits(limit, kind, &path, errors);
        let names: std::collections::BTreeSet<&str> =
            ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
                .iter()
                .flat_map(|part| pairs(&limit[*part]).map(|(name, _)| name))
                .collect();
        for name in names {
            one_limit(limit, name, kind, &path, errors);
        }
    }
}

/// Validates the names of the resources.
///
/// The type Pod has no defaults (`FieldValueForbidden`). The type `PersistentVolumeClaim` needs a
/// minimum or a maximum of `storage`.
fn names_of_limits(limit: &Value, kind: &str, path: &str, errors: &mut Errors) {
    let named = |part: &str, errors: &mut Errors| {
        for (name, _) in pairs(&limit[part]) {
            let path = format!("{path}.{part}[{name}]");
            if ["Pod", "Container"].contains(&kind) {
                resources::name_of_container(name, &path, errors);
            } else {
                resources::known_name(name, &path, errors);
            }
        }
    };
    named("max", errors);
    named("min", errors);
    for part in ["default", "defaultRequest"] {
        if kind != "Pod" {
            named(part, errors);
        } else if pairs(&limit[part]).next().is_some() {
            errors.forbidden(&format!("{path}.{part}"), "may not be specified when `type` is 'Pod'");
        }
    }
    let has_storage = ["min", "max"].iter().any(|part| !limit[*part]["storage"].is_null());
    if kind == "PersistentVolumeClaim" && !has_storage {
        let detail = "either minimum or maximum storage value is required, but neither was provided";
        errors.required(&format!("{path}.limits"), detail);
    }
    named("maxLimitRequestRatio", errors);
}

/// Pairs of amounts that must be in order: the lower field, the upper field and the field of the error.
const ORDERS: &[(&str, &str, &str)] = &[
    ("min", "max", "min"),
    ("min", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest"),
    ("min", "default", "default"),
    ("default", "max", "default"),
];

/// Validates the amounts of one resource: their order, the ratio, and equal request and limit where
/// overcommitment is not possible, as for extended resources.
fn one_limit(limit: &Value, name: &str, kind: &str, path: &str, errors: &mut Errors) {
    let is_given = |part: &str| kind != "Pod" || !part.starts_with("default");
    let size = |part: &str| resources::size(&limit[part][name]).filter(|_| is_given(part));
    for (less, more, field) in ORDERS {
        if let (Some(least), Some(most)) = (size(less), size(more))
            && least > most
        {
            let detail = format!("{less} must not be greater than {more}");
            errors.invalid(&format!("{path}.{field}[{name}]"), &limit[*field][name], &detail);
        }
    }
    ratio(limit, name, path, &size, errors);
    if let (Some(request), Some(most), false) =
        (size("defaultRequest"), size("default"), resources::is_overcommitted(name))
        && request != most
    {
        let (request, most) = (&limit["defaultRequest"][name], text(&limit["default"][name]));
        let detail = format!("default value {most} must equal to defaultRequest value {} in {name}", text(request));
        errors.invalid(&format!("{path}.defaultRequest[{name}]"), request, &detail);
    }
}

/// Validates `maxLimitRequestRatio`, by how much a limit may exceed its request: at least 1, and at
/// most `max / min`.
///
/// `size` returns an amount of the limit in thousandths.
///
/// An invalid quantity is not compared; the decoder or another rule reports it.
fn ratio(limit: &Value, name: &str, path: &str, size: &dyn Fn(&str) -> Option<i128>, errors: &mut Errors) {
    let (ratio, ratio_path) = (&limit["maxLimitRequestRatio"][name], format!("{path}.maxLimitRequestRatio[{name}]"));
    let Some(most) = resources::size(ratio) else { return };
    if most < quantity::amount("1").unwrap_or_default() {
        errors.invalid(&ratio_path, ratio, "must be at least 1");
    }
    if let (Some(least), Some(greatest)) = (size("min"), size("max")) {
        let span = as_float(greatest) / as_float(least);
        if as_float(most) / 1000.0 > span {
            errors.invalid(&ratio_path, ratio, "must be at most max / min");
        }
    }
}

/// Converts an amount to the type in which kube-apiserver compares ratios. Beyond 53 bits, digits are lost.
#[expect(clippy::cast_precision_loss, reason = "kube-apiserver compares ratios of this precision")]
fn as_float(amount: i128) -> f64 {
    amount as f64
}

/// Validates that the set of scopes is unchanged. Order and repetitions are ignored.
pub(crate) fn scopes_stay(old: &Value, new: &Value, errors: &mut Errors) {
    let all = |scopes| -> BTreeSet<&str> { entries(scopes).map(|(_, scope)| text(scope)).collect() };
    if all(old) != all(new) {
        errors.invalid("spec.scopes", new, "field is immutable");
    }
}
