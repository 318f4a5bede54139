//! Decides which requests a webhook or a policy matches: rules, selectors, and equivalent versions.
//!
//! Matching runs before any expensive step: most requests match no webhook and no policy.

use serde_json::{Value, json};

use super::{Attributes, GROUP};
use crate::{kinds::core::namespace, registry::Resource, request::RequestInfo, selector::selects, store::Store};

/// A resource in a version (`GroupVersionResource`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Versioned {
    /// The API group; empty for the core group.
    pub(crate) group: String,
    /// The version, without the group.
    pub(crate) version: String,
    /// The plural name, without a subresource.
    pub(crate) resource: String,
}

impl Versioned {
    /// Returns the `GroupVersionResource` of a resource.
    ///
    /// For the resource of a request, this is the requested version.
    pub(crate) fn for_resource(resource: &Resource) -> Self {
        Self {
            group: resource.id.group.clone(),
            version: resource.version.clone(),
            resource: resource.id.resource.clone(),
        }
    }

    /// Returns the JSON form that reviews use.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "group": self.group, "version": self.version, "resource": self.resource })
    }
}

/// Returns `true` if policies apply to the request. They apply neither to policies nor to requests that a cluster needs
/// to work (`plugin/policy/generic/plugin.go` of kube-apiserver, and `admission/exclusion/resources.go`).
pub(super) fn takes_policies(info: &RequestInfo) -> bool {
    !info.resource.kind.requests.is_exempt_from_policies
}

/// Returns `true` if webhooks are called for the request (`admission/exclusion/resources.go`).
///
/// Webhooks are not called for configurations of webhooks and policies, because a broken webhook could then not be
/// repaired. They are not called for reviews either, which a cluster needs to work.
///
/// A CRD may define a kind in the group `admissionregistration.k8s.io`. Webhooks are called for its objects.
pub(super) fn takes_webhooks(info: &RequestInfo) -> bool {
    info.resource.custom.is_some() || (info.resource.id.group != GROUP && !info.resource.kind.is_exempt_from_webhooks())
}

/// Returns the resource under which one of the rules matches; the requested one is tried first.
///
/// Returns `None` if no rule matches. With `matchPolicy: Exact` only the requested version is compared, otherwise any
/// version and name of the same objects. The first of several matching rules is used.
pub(crate) fn matching_resource(
    store: &Store,
    rules: &Value,
    match_policy: &str,
    attributes: &Attributes<'_>,
) -> Option<Versioned> {
    let requested = Versioned::for_resource(&attributes.info.resource);
    let rules = rules.as_array().map_or(&[][..], Vec::as_slice);
    if rules.iter().any(|rule| rule_matches(rule, &requested, attributes)) {
        return Some(requested);
    }
    if match_policy == "Exact" {
        return None;
    }
    let others = equivalents(store, &attributes.info.resource, &requested);
    rules.iter().find_map(|rule| others.iter().find(|other| rule_matches(rule, other, attributes)).cloned())
}

/// Returns the other served versions and names of a resource. The kinds of a shared table have the same versions
/// (`EquivalentResourceRegistry`).
fn equivalents(store: &Store, resource: &Resource, requested: &Versioned) -> Vec<Versioned> {
    if let Some(other) = resource.kind.shared_table_kind() {
        return vec![Versioned { group: other.group.into(), resource: other.resource.into(), ..requested.clone() }];
    }
    let versions = store.registry.versions_of(&resource.id);
    versions.filter(|other| other.version != requested.version).map(|other| Versioned::for_resource(&other)).collect()
}

/// Returns `true` if a rule matches a resource and the operation. In `resources`, `*` alone matches objects but no
/// subresources, `pods/*` Pods and all of their subresources, and `*/*` everything.
fn rule_matches(rule: &Value, resource: &Versioned, attributes: &Attributes<'_>) -> bool {
    let list = |field: &str| rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
    let has = |field: &str, value: &str| list(field).any(|listed| listed == "*" || listed == value);
    // Only rules of policies have `resourceNames`.
    let fits_name = rule["resourceNames"].as_array().is_none_or(Vec::is_empty)
        || list("resourceNames").any(|name| name == attributes.name);
    // A Namespace object is cluster-scoped, although its requests have a namespace.
    let namespaced = attributes.info.resource.listed.namespaced;
    let fits_scope = match rule["scope"].as_str() {
        Some("Namespaced") => namespaced,
        Some("Cluster") => !namespaced,
        _ => true,
    };
    let subresource = attributes.info.subresource.as_str();
    let fits_resource = list("resources").any(|listed| {
        let (name, sub) = listed.split_once('/').unwrap_or((listed, ""));
        (name == "*" || name == resource.resource) && (sub == "*" || sub == subresource)
    });
    fits_scope
        && fits_name
        && has("operations", attributes.operation.name())
        && has("apiGroups", &resource.group)
        && has("apiVersions", &resource.version)
        && fits_resource
}

/// Returns `true` if a selector selects the namespace of the object (`predicates/namespace/matcher.go`).
///
/// Cluster-scoped objects match any selector. A Namespace object is matched by its own labels: the labels of the new
/// state, if there is one.
pub(crate) fn namespace_fits(store: &Store, selector: &Value, attributes: &Attributes<'_>) -> bool {
    if selector.as_object().is_none_or(serde_json::Map::is_empty) {
        return true;
    }
    if attributes.info.resource.kind.requests.is_own_namespace {
        let shown = attributes.object.as_ref().or(attributes.old.as_deref());
        return shown.is_none_or(|object| selects(selector, &object["metadata"]["labels"]));
    }
    namespace_object(store, attributes).is_none_or(|namespace| selects(selector, &namespace["metadata"]["labels"]))
}

/// Returns the Namespace object of a namespaced request.
pub(crate) fn namespace_object(store: &Store, attributes: &Attributes<'_>) -> Option<std::sync::Arc<Value>> {
    if !attributes.info.resource.listed.namespaced {
        return None;
    }
    store.object(&namespace::KIND, "", &attributes.info.namespace)
}

/// Returns `true` if a selector selects the new or the old object.
///
/// A webhook therefore also receives the update with which an object starts or stops matching.
pub(crate) fn object_fits(selector: &Value, attributes: &Attributes<'_>) -> bool {
    if selector.as_object().is_none_or(serde_json::Map::is_empty) {
        return true;
    }
    let chosen = |object: &Value| selects(selector, &object["metadata"]["labels"]);
    attributes.object.as_ref().is_some_and(chosen) || attributes.old.as_deref().is_some_and(chosen)
}
