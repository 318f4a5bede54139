//! Validation of the resources that containers, Pods, quotas and claims request or limit.
//!
//! Amounts are quantities, already parsed and canonical in the object; rules compare them in
//! thousandths, so that `100m` and `0.1` are equal. Names fall into three classes: standard ones
//! (`cpu`), native ones with the domain `kubernetes.io`, and extended ones with another domain
//! (`example.com/gpu`).
//!
//! Upstream: `ValidateResourceRequirements` and the functions around it in
//! `pkg/apis/core/validation/validation.go`, and `pkg/apis/core/helper/helpers.go` for the classes.

use serde_json::Value;

use crate::{
    amounts::{self, Side},
    field_errors::{Errors, pairs, text},
    names::{NameRule, check_qualified_name},
    quantity,
    validation::entries,
};

/// Resources that are counted in whole numbers.
///
/// Most are kinds of objects in a quota.
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

/// Standard resources that may have fractions. Names with a prefix are those of quotas.
const MEASURED: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "requests.storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// The prefix of huge pages; the page size follows, such as `hugepages-2Mi`.
const PAGES: &str = "hugepages-";

/// The part of a Pod that requests resources. It decides which resources are allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// `resources` of a container: extended resources are allowed.
    Container,
    /// `spec.resources` of a Pod: `cpu`, `memory` and huge pages only.
    Pod,
}

/// Validates requests, limits and claims (`ValidateResourceRequirements`): names, amounts, and requests within limits.
///
/// `path` is the field path of the whole field. `claims` are the names of the resource claims of the Pod.
///
/// - Limits: each name and amount.
/// - Requests: each name and amount; at most the limit. Resources that cannot be overcommitted
///   need a limit that equals the request.
/// - Huge pages need `cpu` or `memory` beside them, in requests or limits (`FieldValueForbidden`).
/// - Claims: see `claimed`.
///
/// An error about a request and its limit is at `requests`, without the name of the resource.
pub(crate) fn resources(resources: &Value, path: &str, asker: Asker, claims: &[&str], errors: &mut Errors) {
    let (limits, requests) = (&resources["limits"], &resources["requests"]);
    let limits_path = format!("{path}.limits");
    for (name, amount) in pairs(limits) {
        limit(name, amount, &format!("{limits_path}[{name}]"), asker, errors);
    }
    for (name, amount) in pairs(requests) {
        let requests_path = format!("{path}.requests");
        let request_path = format!("{requests_path}[{name}]");
        name_and_sign(name, amount, &request_path, asker, errors);
        let limit = limits.get(name).filter(|limit| !limit.is_null());
        match (limit, is_overcommitted(name)) {
            (Some(limit), false) if size(amount) != size(limit) => {
                errors.invalid(&requests_path, amount, &format!("must be equal to {name} limit of {}", text(limit)));
            }
            (Some(limit), _) if size(amount) > size(limit) => {
                let detail = format!("must be less than or equal to {name} limit of {}", text(limit));
                errors.invalid(&requests_path, amount, &detail);
            }
            (None, false) => errors.required(&limits_path, "Limit must be set for non overcommitable resources"),
            _ => {}
        }
        pages(name, amount, &request_path, errors);
    }
    let asks_for =
        |is_resource: &dyn Fn(&str) -> bool| pairs(limits).chain(pairs(requests)).any(|(name, _)| is_resource(name));
    if asks_for(&|name| name.starts_with(PAGES)) && !asks_for(&|name| ["cpu", "memory"].contains(&name)) {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
    claimed(&resources["claims"], &format!("{path}.claims"), claims, errors);
}

/// Validates name, amount and page multiple of a limit. Requests are validated by the same three rules, with other
/// rules in between.
fn limit(name: &str, amount: &Value, path: &str, asker: Asker, errors: &mut Errors) {
    name_and_sign(name, amount, path, asker, errors);
    pages(name, amount, path, errors);
}

/// Validates the name by the rules of the asker, then the amount. The amount is validated even if the name is invalid.
fn name_and_sign(name: &str, amount: &Value, path: &str, asker: Asker, errors: &mut Errors) {
    match asker {
        Asker::Container => name_of_container(name, path, errors),
        Asker::Pod => name_of_pod(name, path, errors),
    }
    value(name, amount, path, errors);
}

/// Validates that an amount is not negative, and an integer for counted and extended resources
/// (`ValidateResourceQuantityValue`).
///
/// Quotas and limit ranges call it too. A quantity that does not parse has no errors here: decoding
/// rejects it before.
pub(crate) fn value(name: &str, amount: &Value, path: &str, errors: &mut Errors) {
    if size(amount).is_some_and(|size| size < 0) {
        errors.invalid(path, amount, "must be greater than or equal to 0");
    }
    if (COUNTED.contains(&name) || is_extended(name)) && size(amount).is_some_and(|size| wrapped(size) % 1000 != 0) {
        errors.invalid(path, amount, "must be an integer");
    }
}

/// Returns thousandths as kube-apiserver counts them: an amount beyond 63 bits is truncated to its lower bits.
///
/// Upstream takes `Quantity.MilliValue`, which overflows. The remainder by 1000 of an overflowed
/// number differs from the exact one, so a huge integer can be rejected as not being an integer, by
/// kube-apiserver and here.
fn wrapped(thousandths: i128) -> i128 {
    #[expect(clippy::cast_possible_truncation, reason = "that is the point")]
    let lower = thousandths as i64;
    if thousandths / 1000 > i128::from(i64::MAX) { i128::from(lower) } else { thousandths }
}

/// Validates that an amount of huge pages is a multiple of the page size (`FieldValueInvalid`).
///
/// The page size is parsed from the name. A size of zero or below rejects every amount.
fn pages(name: &str, amount: &Value, path: &str, errors: &mut Errors) {
    let Some(page) = name.strip_prefix(PAGES).and_then(quantity::amount) else { return };
    if size(amount).is_some_and(|size| page <= 0 || size % page != 0) {
        let amount = text(amount);
        errors.invalid(path, &amount.into(), &format!("{amount} is not positive integer multiple of {name}"));
    }
}

/// Validates a qualified resource name, which must be a standard one if it has no domain (`validateResourceName`).
///
/// Returns `true` if the name is valid.
///
/// `false` means that errors were added, so callers can skip rules that assume a valid name.
pub(crate) fn known_name(name: &str, path: &str, errors: &mut Errors) -> bool {
    let before = errors.len();
    errors.qualified_name(path, name);
    if errors.len() == before && !name.contains('/') && !is_standard(name) {
        errors.invalid(path, &name.into(), "must be a standard resource type or fully qualified");
    }
    errors.len() == before
}

/// Validates the name of a resource that a container requests.
///
/// Upstream: `validateContainerResourceName`. A name without a domain must be one that containers
/// have. A name with a domain must be native or a valid extended resource name. Several errors are
/// possible for one name.
pub(crate) fn name_of_container(name: &str, path: &str, errors: &mut Errors) {
    known_name(name, path, errors);
    let of_containers = ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with(PAGES);
    if !name.contains('/') {
        if !of_containers {
            errors.invalid(path, &name.into(), "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.invalid(path, &name.into(), "doesn't follow extended resource name standard");
    }
}

/// Validates the name of a Pod-level resource: `cpu`, `memory` or huge pages (`FieldValueNotSupported` otherwise).
///
/// Extended resources are allocated to containers by device plugins, hence never to a Pod as a
/// whole.
fn name_of_pod(name: &str, path: &str, errors: &mut Errors) {
    if known_name(name, path, errors) && !["cpu", "memory"].contains(&name) && !name.starts_with(PAGES) {
        errors.unsupported(path, &name.into(), &["cpu", "hugepages-", "memory"]);
    }
}

/// Returns `true` for names that need no domain (`IsStandardResourceName`), those of quotas
/// included.
pub(crate) fn is_standard(name: &str) -> bool {
    COUNTED.contains(&name)
        || MEASURED.contains(&name)
        || name.starts_with(PAGES)
        || name.strip_prefix("requests.").is_some_and(|rest| rest.starts_with(PAGES))
}

/// Returns `true` for resources of Kubernetes: without a domain, or of `kubernetes.io` (`IsNativeResource`).
///
/// As upstream it looks for `kubernetes.io/` anywhere, so `a.kubernetes.io/b` is native too.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns `true` for resources of other domains whose quota name is also valid (`IsExtendedResourceName`).
///
/// Quotas limit an extended resource by the name `requests.` and its name, which is why the longer
/// name must fit as well. Names that begin with `requests.` would be ambiguous.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && check_qualified_name(&format!("requests.{name}")).is_none()
}

/// Returns `true` for resources whose limit may exceed the request (`IsOvercommitAllowed`).
///
/// Memory and CPU can be overcommitted. Devices and huge pages cannot: their limit must equal their request.
pub(crate) fn is_overcommitted(name: &str) -> bool {
    is_native(name) && !name.starts_with(PAGES)
}

/// Returns an amount in thousandths, `None` for an invalid quantity.
///
/// An absent amount is `None` as well.
pub(crate) fn size(amount: &Value) -> Option<i128> {
    quantity::amount(text(amount))
}

/// Validates the claims of a container against the claims of its Pod (`FieldValueNotFound`). A claim is listed once as
/// a whole, or once per request (`FieldValueDuplicate`).
///
/// `keys` holds a claim's name, or name and request with a slash. Rules for a repeated claim:
///
/// - after the whole claim, anything of it again is a duplicate;
/// - the whole claim after single requests is a duplicate;
/// - the same request of the same claim is a duplicate.
fn claimed(list: &Value, path: &str, declared: &[&str], errors: &mut Errors) {
    let mut keys: Vec<String> = Vec::new();
    for (index, claim) in entries(list) {
        let (path, name, request) = (format!("{path}[{index}]"), text(&claim["name"]), text(&claim["request"]));
        if name.is_empty() {
            errors.required(&path, "");
            continue;
        }
        if keys.iter().any(|key| key == name) {
            // The whole claim is already listed.
            errors.duplicate(&path);
        } else if request.is_empty() {
            if keys.iter().any(|key| key.split('/').next() == Some(name)) {
                errors.duplicate(&path);
            }
            keys.push(name.to_owned());
        } else {
            errors.name(&format!("{path}.request"), &claim["request"], NameRule::Label);
            let key = format!("{name}/{request}");
            if keys.contains(&key) {
                errors.duplicate(&path);
            }
            keys.push(key);
        }
        if !declared.contains(&name) {
            errors.not_found(&path, &claim["name"]);
        }
    }
}

/// Validates the resources of a whole Pod, beside those of its containers (`validatePodResources`,
/// feature gate `PodLevelResources`).
///
/// - Not for Windows Pods, and never with `claims` (`FieldValueForbidden`).
/// - Requests must be at least the sum of the containers' requests (`FieldValueInvalid`).
/// - Limits of huge pages must be at least the sum of the containers' limits. Other limits may be
///   smaller than the sum, since containers seldom reach their limits together.
/// - No single container may have a limit above that of the Pod.
///
/// Sums follow the rules of the scheduler for init containers and sidecars (`amounts::of_pod`).
pub(crate) fn of_pod(spec: &Value, path: &str, claims: &[&str], errors: &mut Errors) {
    let (requested, path) = (&spec["resources"], format!("{path}.resources"));
    if requested.is_null() {
        return;
    }
    if spec["os"]["name"] == "windows" {
        return errors.forbidden(&path, "may not be set for a windows pod");
    }
    if requested["claims"].is_array() {
        errors.forbidden(&format!("{path}.claims"), "claims may not be set for Resources at pod-level");
    }
    resources(requested, &path, Asker::Pod, claims, errors);
    let together = |side: Side, name: &str, is_told: fn(&str) -> bool, errors: &mut Errors| {
        for (resource, sum) in amounts::of_pod(spec, side).iter().filter(|(resource, _)| is_told(resource)) {
            let whole = &requested[name][resource];
            if size(whole).is_some_and(|whole| sum.in_steps(3) > whole) {
                let detail = format!("must be greater than or equal to aggregate container {name} of {sum}");
                errors.invalid(&format!("{path}.{name}[{resource}]"), whole, &detail);
            }
        }
    };
    together(Side::Requests, "requests", |_| true, errors);
    together(Side::Limits, "limits", amounts::is_pages, errors);
    for (index, container) in entries(&spec["containers"]) {
        for (name, limit) in pairs(&container["resources"]["limits"]) {
            let whole = &requested["limits"][name];
            if !whole.is_null() && size(limit) > size(whole) {
                let detail = format!("must be less than or equal to pod limits of {}", text(whole));
                errors.invalid(&format!("{path}.containers[{index}][{name}].limits"), limit, &detail);
            }
        }
    }
}
