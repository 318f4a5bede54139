//! Discovery documents: the groups, versions and resources that `/api` and `/apis` list.
//!
//! There are two forms. Aggregated discovery (`apidiscovery.k8s.io/v2`) consists of two documents; the older form has
//! one document for the groups and one for each version. Clients choose by `Accept`. Both are computed from the
//! registry at each request.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Value, json};

use super::{ApiResource, Registry, Resource};
use crate::{json_path::push, schema};

/// Returns the names of all groups except the core group, in discovery order. A group whose versions are all served by
/// another server is listed too. Groups of CRDs follow the built-in ones by name.
fn groups_in_order(registry: &Registry) -> Vec<&str> {
    let own = registry.groups.keys().map(String::as_str);
    let remote = registry.remote.iter().map(|(group, _)| group.as_str());
    let names: BTreeSet<&str> = own.chain(remote).filter(|name| !name.is_empty()).collect();
    let mut all: Vec<&str> = names.into_iter().collect();
    let built_in = &registry.built_in_groups;
    all.sort_by_key(|name| built_in.iter().position(|ordered| ordered == name).unwrap_or(built_in.len()));
    all
}

/// Returns aggregated discovery (`apidiscovery.k8s.io/v2`) of `/apis`: all groups but the core group.
pub(crate) fn aggregated_apis(registry: &Registry) -> Value {
    aggregated_groups(registry, groups_in_order(registry))
}

/// Returns aggregated discovery of `/api`: the core group.
pub(crate) fn aggregated_core(registry: &Registry) -> Value {
    aggregated_groups(registry, vec![""])
}

/// Returns aggregated discovery of these groups.
fn aggregated_groups(registry: &Registry, names: Vec<&str>) -> Value {
    let groups = names.into_iter().map(|name| {
        let meta = if name.is_empty() { json!({}) } else { json!({ "name": name }) };
        let versions = registry.listed_versions(name).into_iter();
        let versions: Vec<Value> = versions.map(|version| version_of(registry, name, version)).collect();
        json!({ "metadata": meta, "versions": versions })
    });
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": groups.collect::<Vec<_>>(),
    })
}

/// Returns one version of a group with its resources. Resources are sorted by name.
fn version_of(registry: &Registry, group: &str, version: &str) -> Value {
    if registry.remote.contains(&(group.to_owned(), version.to_owned())) {
        // The resources of an aggregated server are unknown here, so the version is reported as stale.
        return json!({ "version": version, "freshness": "Stale" });
    }
    let mut here: Vec<_> =
        registry.all().filter(|resource| resource.id.group == group && resource.version == version).collect();
    here.sort_by_key(|resource| resource.listed.name.as_str());
    let resources = here.into_iter().map(|resource| resource_of(resource));
    json!({ "version": version, "resources": resources.collect::<Vec<_>>(), "freshness": "Current" })
}

/// Returns a resource with its subresources. Empty lists of short names and categories are left out, as Go does.
fn resource_of(resource: &Resource) -> Value {
    let listed = &*resource.discovery_entry();
    let mut item = json!({
        "resource": listed.name,
        "responseKind": response_kind(resource, listed),
        "scope": if listed.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": listed.singular_name,
        "verbs": listed.verbs,
    });
    for (field, names) in [("shortNames", &listed.short_names), ("categories", &listed.categories)] {
        if !names.is_empty() {
            item[field] = json!(names);
        }
    }
    for sub in &resource.subresources {
        let name = sub.name.split_once('/').map_or("", |(_, name)| name);
        let entry = json!({ "subresource": name, "responseKind": response_kind(resource, sub), "verbs": sub.verbs });
        push(&mut item["subresources"], entry);
    }
    item
}

/// Returns the `responseKind`. Built-in kinds leave out the group and version that the document around them names;
/// custom kinds repeat them.
fn response_kind(resource: &Resource, listed: &ApiResource) -> Value {
    let custom_group_version =
        || resource.custom.is_some().then(|| (resource.id.group.clone(), resource.version.clone()));
    let own = listed.group.clone().zip(listed.version.clone()).or_else(custom_group_version);
    let (group, version) = own.unwrap_or_default();
    json!({ "group": group, "version": version, "kind": listed.kind })
}

/// Returns the `APIGroupList` of `/apis`.
pub(crate) fn groups(registry: &Registry) -> Value {
    let all = groups_in_order(registry).into_iter();
    json!({
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": all.filter_map(|name| group_of(registry, name)).collect::<Vec<_>>(),
    })
}

/// Returns the `APIGroup` of `/apis/GROUP`; `None` if the group is not served. The core group has no such document.
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let mut group = group_of(registry, name)?;
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

/// Returns a group with its versions; the first one is preferred.
fn group_of(registry: &Registry, name: &str) -> Option<Value> {
    let versions = registry.listed_versions(name);
    let version = |version: &&str| json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    Some(json!({
        "name": name,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": version(versions.first()?),
    }))
}

/// Returns the `APIResourceList` of `/apis/GROUP/VERSION` or `/api/v1`; `None` if the version is not served. The core
/// group's document has no `apiVersion`, as upstream.
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let here: Vec<_> =
        registry.all().filter(|resource| resource.id.group == group && resource.version == version).collect();
    // The subresources of CRDs are listed in the order status, scale.
    let by_kind = here.iter().any(|resource| resource.custom.is_some());
    let mut listed: Vec<_> = here
        .iter()
        .flat_map(|resource| {
            std::iter::once(resource.discovery_entry()).chain(resource.subresources.iter().map(Cow::Borrowed))
        })
        .collect();
    if listed.is_empty() {
        return None;
    }
    let resource = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    listed.sort_by_cached_key(|listed| if by_kind { resource(&listed.name) } else { listed.name.clone() });
    let group_version = schema::api_version(group, version);
    let mut list = json!({ "kind": "APIResourceList", "groupVersion": group_version, "resources": listed });
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}
