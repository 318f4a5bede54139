//! Validation of the resources that containers, Pods, quotas and claims request or limit.
//!
//! Amounts are quantities, already parsed and canonical in the object; rules compare them in
//! thousandths, so that `100m` and `0.1` are equal. Names fall into three classes: standard ones
//! (`cpu`), native ones with the domain `kubernetes.io`, and extended ones with another domain
//! (`example.com/gpu`).
//!
//! Upstream: `validateResourceRequirements` and the functions around it in
//! `pkg/apis/core/validation/validation.go`, and `pkg/apis/core/helper/helpers.go` for the classes.

use std::collections::{BTreeMap, BTreeSet};

use kctl_apimachinery::validation::is_extended_resource_name;
use serde_json::{Value, json};

use crate::{
    amounts::{self, PAGES, ResourceMap},
    field::Field,
    field_errors::{pairs, text},
    json_path::entries,
    names::{NameRule, check_qualified_name},
    quantity,
};

/// Resources that are counted in whole numbers. Most are kinds of objects in a quota.
const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Standard resources of containers. A quota limits their requests and limits, too: `requests.cpu`, `limits.cpu`.
const STANDARD_CONTAINER_RESOURCES: &[&str] = &["cpu", "memory", "ephemeral-storage"];

/// Validates requests, limits and claims (`validateResourceRequirements`). `check_name` validates the names: those that
/// a container or a Pod as a whole may request. `claims` are the names of the resource claims of the Pod.
///
/// Resources that cannot be overcommitted need a limit that equals the request. Huge pages need `cpu` or `memory` in
/// addition. An error about a request and its limit is at `requests`, without the name of the resource.
pub(crate) fn validate_requirements(resources: &Field<'_>, check_name: fn(&str, &Field<'_>), claims: &BTreeSet<&str>) {
    let (limits, requests) = (resources.at("limits"), resources.at("requests"));
    for (name, amount) in limits.entries().chain(requests.entries()) {
        check_name(name, &amount);
        validate_value(name, &amount);
        validate_pages(name, &amount);
    }
    for (name, request) in requests.entries() {
        let limit = &limits[name];
        if limit.is_null() {
            let detail = format_args!("must have {name}, which can't be overcommitted");
            limits.required_with_if(!is_overcommitted(name), detail);
        } else {
            let (requested, most) = (size(&request), size(limit));
            let how = if is_overcommitted(name) { "less than or equal to" } else { "equal to" };
            let fits = requested == most || (is_overcommitted(name) && requested < most);
            requests.with(&request).invalid_if(!fits, format_args!("must be {how} {name} limit of {}", text(limit)));
        }
    }
    let names = || limits.entries().chain(requests.entries()).map(|(name, _)| name);
    let lacks_memory = names().all(|name| !["cpu", "memory"].contains(&name));
    let detail = "HugePages require cpu or memory";
    resources.forbidden_if(lacks_memory && names().any(|name| name.starts_with(PAGES)), detail);
    validate_claims(&resources.at("claims"), claims);
}

/// Validates the overhead of a Pod or a `RuntimeClass`, by the rules of a container's limits.
pub(crate) fn validate_overhead(overhead: &Field<'_>) {
    let limits = json!({ "limits": overhead.value() });
    validate_requirements(&overhead.with(&limits), validate_container_resource_name, &BTreeSet::new());
}

/// Validates that an amount is not negative, and an integer for counted and extended resources
/// (`ValidateResourceQuantityValue`). A quantity that does not parse has no errors here: decoding rejects it before.
pub(crate) fn validate_value(name: &str, amount: &Field<'_>) {
    let needs_integer = COUNTED.contains(&name) || is_extended_resource_name(name);
    // The quantity itself is compared: `size` clamps amounts from 10^36 on.
    let is_wrong = quantity::parse(amount.text())
        .is_some_and(|amount| amount.is_negative() || (needs_integer && amount != amount.rounded_up(0)));
    let what = if needs_integer { "an integer" } else { "a quantity" };
    amount.invalid_if(is_wrong, format_args!("must be {what} greater than or equal to 0"));
}

/// Validates that an amount of huge pages is a multiple of the page size, which is a part of the name. A size of zero
/// or below rejects every amount.
fn validate_pages(name: &str, amount: &Field<'_>) {
    let Some(page) = name.strip_prefix(PAGES).and_then(quantity::amount) else { return };
    let is_multiple = size(amount).is_none_or(|size| page > 0 && size % page == 0);
    amount.invalid_if(!is_multiple, format_args!("must be a multiple of the page size of {name}"));
}

/// Validates a qualified resource name, which must be a standard one if it has no domain (`validateResourceName`).
/// Returns `true` if the name is valid, so that callers can skip rules that assume a valid name. Errors are at the
/// amount.
pub(crate) fn validate_amount_name(name: &str, amount: &Field<'_>) -> bool {
    let is_valid = check_qualified_name(name).is_none() && (name.contains('/') || is_standard(name));
    amount.with(&name.into()).invalid_if(!is_valid, "must be a standard resource type or fully qualified");
    is_valid
}

/// Validates the name of a resource that a container requests (`ValidateContainerResourceName`).
pub(crate) fn validate_container_resource_name(name: &str, amount: &Field<'_>) {
    let is_known = if name.contains('/') {
        is_native(name) || is_extended_resource_name(name)
    } else {
        STANDARD_CONTAINER_RESOURCES.contains(&name) || name.starts_with(PAGES)
    };
    let detail = "must be cpu, memory, ephemeral-storage, huge pages such as hugepages-2Mi, or an extended resource \
                  such as example.com/gpu";
    amount.with(&name.into()).invalid_if(!is_known || check_qualified_name(name).is_some(), detail);
}

/// Validates the name of a Pod-level resource. Extended resources are allocated to containers by device plugins, hence
/// never to a Pod as a whole.
fn validate_pod_resource_name(name: &str, amount: &Field<'_>) {
    let is_other = validate_amount_name(name, amount) && !["cpu", "memory"].contains(&name) && !name.starts_with(PAGES);
    amount.with(&name.into()).unsupported_if(is_other, &["cpu", "hugepages-", "memory"]);
}

/// Returns `true` for names that need no domain (`IsStandardResourceName`), including names of quotas.
pub(crate) fn is_standard(name: &str) -> bool {
    let plain = name.strip_prefix("requests.").unwrap_or(name);
    COUNTED.contains(&name) || is_standard_container_resource(name) || plain == "storage" || plain.starts_with(PAGES)
}

/// Returns `true` for a standard resource of containers, and for the name of its requests or limits in a quota.
pub(crate) fn is_standard_container_resource(name: &str) -> bool {
    let plain = ["requests.", "limits."].into_iter().find_map(|prefix| name.strip_prefix(prefix));
    STANDARD_CONTAINER_RESOURCES.contains(&plain.unwrap_or(name))
}

/// Returns `true` for resources of Kubernetes (`IsNativeResource`). As upstream it looks for `kubernetes.io/` anywhere,
/// so `a.kubernetes.io/b` is native too.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns `true` for resources whose limit may exceed the request (`IsOvercommitAllowed`): not for devices and huge
/// pages.
pub(crate) fn is_overcommitted(name: &str) -> bool {
    is_native(name) && !name.starts_with(PAGES)
}

/// Returns an amount in thousandths, `None` for an invalid quantity and for an absent one.
pub(crate) fn size(amount: &Value) -> Option<i128> {
    quantity::amount(text(amount))
}

/// Validates the claims of a container against the claims of its Pod. A claim is listed once as a whole, or once per
/// request.
fn validate_claims(list: &Field<'_>, declared: &BTreeSet<&str>) {
    // The requests of each claim. The empty one is the claim as a whole.
    let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for claim in list.items() {
        let (name, request) = (claim.at("name").text(), claim.at("request"));
        if name.is_empty() {
            claim.required();
            continue;
        }
        let requests = listed.entry(name).or_default();
        let is_whole = requests.contains("");
        let is_repeated = requests.contains(request.text()) || (request.is_empty() && !requests.is_empty());
        claim.duplicate_if(is_whole || is_repeated);
        // Upstream does not validate a request of a claim that is already listed as a whole.
        if !is_whole {
            request.name_if_set(NameRule::Label);
        }
        requests.insert(request.text());
        claim.with(&claim["name"]).not_found_if(!declared.contains(name));
    }
}

/// Validates the resources of a whole Pod, in addition to its containers' (`validatePodResources`, feature gate
/// `PodLevelResources`).
///
/// Limits other than of huge pages may be smaller than the sum of the containers' limits, since containers seldom reach
/// their limits together. But no single container may have a limit above the Pod's. Sums follow the rules of the
/// scheduler for init containers and sidecars (`amounts::aggregate_containers`).
pub(crate) fn validate_pod_resources(spec: &Field<'_>, claims: &BTreeSet<&str>) {
    let resources = spec.at("resources");
    if resources.is_null() {
        return;
    }
    if spec["os"]["name"] == "windows" {
        return resources.forbidden("may not be set for a windows pod");
    }
    let claimed = resources.at("claims");
    claimed.forbidden_if(claimed.is_array(), "claims may not be set for Resources at pod-level");
    validate_requirements(&resources, validate_pod_resource_name, claims);
    let is_any: fn(&str) -> bool = |_name| true;
    for (side, part, is_compared) in [
        (ResourceMap::Requests, "requests", is_any),
        (ResourceMap::Limits, "limits", amounts::is_pages as fn(&str) -> bool),
    ] {
        for (name, sum) in amounts::aggregate_containers(spec, side).iter().filter(|(name, _)| is_compared(name)) {
            let whole = resources.at(part).at_key(name);
            let is_less = size(&whole).is_some_and(|whole| sum.in_steps(3) > whole);
            let detail = format_args!("must be greater than or equal to aggregate container {part} of {sum}");
            whole.invalid_if(is_less, detail);
        }
    }
    for (index, container) in entries(&spec["containers"]) {
        for (name, limit) in pairs(&container["resources"]["limits"]) {
            let whole = &resources["limits"][name];
            let is_more = !whole.is_null() && size(limit) > size(whole);
            let limit = resources.at_with(&format!("containers[{index}][{name}].limits"), limit);
            limit.invalid_if(is_more, format_args!("must be less than or equal to pod limits of {}", text(whole)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::validate_value;
    use crate::{field::Field, field_errors::Errors};

    #[test]
    fn huge_whole_amounts_of_counted_resources_are_valid() {
        for (text, is_valid) in
            [("9E", true), ("12E", true), ("1e40", true), ("12000000000000000000500m", false), ("-1", false)]
        {
            let amount = json!(text);
            let errors = Errors::collect(|errors| validate_value("pods", &Field::new(&amount, "pods", errors)));
            assert_eq!(errors.is_empty(), is_valid, "{text}: {errors:?}");
        }
    }
}
