//! Validation of `ResourceQuota` and `LimitRange` objects.
//!
//! Upstream: `ValidateResourceQuota` and `ValidateLimitRange` in
//! `pkg/apis/core/validation/validation.go`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, pairs, text},
    json_path::entries,
    quantity,
    validation::{declared, resources},
};

/// Scopes that a quota cannot have together.
const CONFLICTS: &[[&str; 2]] = &[["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

/// Returns `true` for resources of Pods that quotas count, to which most scopes apply.
pub(crate) fn counts_pods(name: &str) -> bool {
    name == "pods" || resources::is_standard_container_resource(name)
}

/// Validates the status (`ValidateResourceQuotaStatusUpdate`).
pub(crate) fn status(object: &Value, errors: &mut Errors) {
    let status = Field::new(&object["status"], "status", errors);
    for (name, amount) in status.at("hard").entries().chain(status.at("used").entries()) {
        validate_quantity(name, &amount);
    }
}

/// Validates the name and the amount of a counted resource.
fn validate_quantity(name: &str, amount: &Field<'_>) {
    resources::validate_amount_name(name, amount);
    resources::validate_value(name, amount);
    // Storage is limited as `requests.storage`, because only claims request it.
    let is_standard = name.contains('/') || (resources::is_standard(name) && name != "storage");
    amount.invalid_if(!is_standard, "must be a standard resource for quota");
}

/// Validates a quota: its amounts, `spec.scopes` and `spec.scopeSelector`.
pub(crate) fn validate_quota(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let scopes = spec.at("scopes");
    spec.at("hard").entries().for_each(|(name, amount)| validate_quantity(name, &amount));
    let all: Vec<&str> = entries(&scopes).map(|(_, scope)| text(scope)).collect();
    let different: BTreeSet<&str> = all.iter().copied().collect();
    let known = declared::values("core.v1.ResourceQuotaSpec", "scopes");
    let is_wrong = |scope: &&str| !known.contains(scope) || names_outside_scope(&spec, scope).next().is_some();
    let detail = "must be scopes that apply to all resources in `hard`, and do not exclude each other";
    scopes.invalid_if(different.iter().any(is_wrong) || are_conflicting(&all), detail);
    validate_scope_selector(&spec);
}

/// Iterates over the standard resources of a quota to which a scope does not apply. `BestEffort` Pods request nothing
/// that could be counted.
fn names_outside_scope<'a>(spec: &'a Value, scope: &'a str) -> impl Iterator<Item = &'a str> {
    let is_about = move |name: &str| match scope {
        "BestEffort" => name == "pods",
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            counts_pods(name)
        }
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&name),
        _ => true,
    };
    pairs(&spec["hard"]).map(|(name, _)| name).filter(move |name| resources::is_standard(name) && !is_about(name))
}

/// Returns `true` if two of the scopes exclude each other.
fn are_conflicting(all: &[&str]) -> bool {
    CONFLICTS.iter().any(|pair| pair.iter().all(|scope| all.contains(scope)))
}

/// Validates `spec.scopeSelector`.
///
/// Scopes without values accept only the operator `Exists`. `PriorityClass` and `VolumeAttributesClass` also accept
/// `In` and `NotIn` with values, and `DoesNotExist`.
fn validate_scope_selector(spec: &Field<'_>) {
    /// Scopes without values.
    const EXISTS: &[&str] =
        &["BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity"];
    let (list, mut all) = (spec.at("scopeSelector").at("matchExpressions"), Vec::new());
    let [known_scopes, operators] =
        ["scopeName", "operator"].map(|name| declared::values("core.v1.ScopedResourceSelectorRequirement", name));
    let scopes: BTreeSet<&str> = entries(&list).map(|(_, requirement)| text(&requirement["scopeName"])).collect();
    // Each is compared with all resources in `hard`. An unknown scope is wrong by itself, and there may be many.
    let mut scopes = scopes.into_iter().filter(|scope| known_scopes.contains(scope));
    let is_unscoped = scopes.any(|scope| names_outside_scope(spec, scope).next().is_some());
    for requirement in list.items().map(|requirement| requirement.value()) {
        // Paths have no index, as in kube-apiserver.
        let [scope, operator, values] =
            ["scopeName", "operator", "values"].map(|name| list.at_with(name, &requirement[name]));
        scope.invalid_if(!known_scopes.contains(&scope.text()), "unsupported scope");
        let is_in = ["In", "NotIn"].contains(&operator.text());
        let is_known = operators.contains(&operator.text());
        let needs_exists = EXISTS.contains(&scope.text()) && *operator != "Exists";
        let detail = "must be Exists, or for PriorityClass and VolumeAttributesClass also In, NotIn or DoesNotExist";
        operator.invalid_if(!is_known || needs_exists, detail);
        let is_missing = is_in && values.is_empty();
        values.required_with_if(is_missing, "must have at least one value for the operators In and NotIn");
        values.invalid_if(is_known && !is_in && !values.is_empty(), "needs the operator In or NotIn");
        all.push(text(&requirement["scopeName"]));
    }
    list.invalid_if(is_unscoped, "must have only scopes that apply to the resources in `hard`");
    // As in kube-apiserver, the error is at `scopes`.
    spec.at("scopes").invalid_if(are_conflicting(&all), "conflicting scopes in `scopeSelector`");
}

/// Validates a `LimitRange`. A type is a standard one, or has a domain for objects of other APIs. The amounts of one
/// resource must increase in this order: `min`, `defaultRequest`, `default`, `max`.
pub(crate) fn validate_limit_range(object: &Value, errors: &mut Errors) {
    /// Standard types of limits.
    const KINDS: &[&str] = &["Pod", "Container", "PersistentVolumeClaim"];
    let limits = Field::new(&object["spec"]["limits"], "spec.limits", errors);
    limits.unique_at("type");
    for limit in limits.items() {
        let kind = limit.at("type");
        kind.qualified_name();
        let is_known = kind.text().contains('/') || KINDS.contains(&kind.text());
        kind.invalid_if(!is_known, "must be a standard limit type or fully qualified");
        validate_limit_names(&limit);
        let names: BTreeSet<&str> =
            AMOUNTS.iter().flat_map(|part| limit.at(part).entries()).map(|(name, _)| name).collect();
        for name in names {
            validate_limit(&limit, name);
        }
    }
}

/// The maps of amounts of a limit.
const AMOUNTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

/// Validates the names of the resources. The type `PersistentVolumeClaim` needs a minimum or a maximum of `storage`.
fn validate_limit_names(limit: &Field<'_>) {
    let kind = text(&limit["type"]);
    for part in AMOUNTS {
        let amounts = limit.at(part);
        if kind == "Pod" && part.starts_with("default") {
            amounts.forbidden_if(!amounts.is_empty(), "may not be specified when `type` is 'Pod'");
            continue;
        }
        for (name, amount) in amounts.entries() {
            if ["Pod", "Container"].contains(&kind) {
                resources::validate_container_resource_name(name, &amount);
            } else {
                resources::validate_amount_name(name, &amount);
            }
        }
    }
    let has_storage = ["min", "max"].iter().any(|part| !limit[*part]["storage"].is_null());
    let is_missing = kind == "PersistentVolumeClaim" && !has_storage;
    limit.at("limits").required_with_if(is_missing, "must have a minimum or maximum of storage");
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

/// Validates the amounts of one resource: their order, the ratio, and equal request and limit where overcommitment is
/// not possible, as for extended resources.
fn validate_limit(limit: &Field<'_>, name: &str) {
    let is_pod = limit["type"] == "Pod";
    let is_given = |part: &str| !is_pod || !part.starts_with("default");
    let size = |part: &str| resources::size(&limit[part][name]).filter(|_| is_given(part));
    for (less, more, field) in ORDERS {
        let is_wrong = size(less).zip(size(more)).is_some_and(|(least, most)| least > most);
        limit.at(field).at_key(name).invalid_if(is_wrong, format_args!("{less} must not be greater than {more}"));
    }
    validate_ratio(&limit.at("maxLimitRequestRatio").at_key(name), size("min").zip(size("max")));
    let is_other = size("defaultRequest").zip(size("default")).is_some_and(|(request, most)| request != most);
    let request = limit.at("defaultRequest").at_key(name);
    request.invalid_if(is_other && !resources::is_overcommitted(name), "must equal the amount in `default`");
}

/// Validates `maxLimitRequestRatio`, by how much a limit may exceed its request. `bounds` are `min` and `max` in
/// thousandths. An invalid quantity is not compared; the decoder or another rule reports it.
fn validate_ratio(ratio: &Field<'_>, bounds: Option<(i128, i128)>) {
    let Some(most) = resources::size(ratio) else { return };
    let is_small = most < quantity::amount("1").unwrap_or_default();
    let is_large =
        bounds.is_some_and(|(least, greatest)| as_float(most) / 1000.0 > as_float(greatest) / as_float(least));
    ratio.invalid_if(is_small || is_large, "must be at least 1, and at most max / min");
}

/// Converts an amount to the type in which kube-apiserver compares ratios. Beyond 53 bits, digits are lost.
#[expect(clippy::cast_precision_loss, reason = "kube-apiserver compares ratios of this precision")]
fn as_float(amount: i128) -> f64 {
    amount as f64
}

/// Validates that the set of scopes is unchanged. Order and repetitions are ignored.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let all = |quota: &Value| -> BTreeSet<String> {
        entries(&quota["spec"]["scopes"]).map(|(_, scope)| text(scope).to_owned()).collect()
    };
    let scopes = Field::new(&new["spec"]["scopes"], "spec.scopes", errors);
    scopes.invalid_if(all(old) != all(new), "field is immutable");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Takes minutes if each scope is compared with each resource.
    #[test]
    fn many_unknown_scopes_of_many_resources_are_invalid() {
        let hard: Value = (0..50_000).map(|n| (format!("example.com/r{n}"), json!("1"))).collect();
        let requirement = |n: usize| json!({ "scopeName": format!("s{n}"), "operator": "Exists" });
        let quota = |scope: &str| {
            let requirements =
                (0..50_000).map(requirement).chain([json!({ "scopeName": scope, "operator": "Exists" })]);
            let selector = json!({ "matchExpressions": requirements.collect::<Value>() });
            json!({ "spec": { "hard": hard, "scopeSelector": selector } })
        };
        let fields = |quota: &Value| -> BTreeSet<String> {
            Errors::collect(|errors| validate_quota(quota, errors)).into_iter().map(|error| error.field).collect()
        };
        let (list, scope) = ("spec.scopeSelector.matchExpressions", "spec.scopeSelector.matchExpressions.scopeName");
        assert_eq!(fields(&quota("Terminating")), BTreeSet::from([scope.to_owned()]));
        let mut claims = quota("Terminating");
        claims["spec"]["hard"]["persistentvolumeclaims"] = json!("1");
        assert_eq!(fields(&claims), BTreeSet::from([list.to_owned(), scope.to_owned()]));
    }
}
