//! The registry of served resources: the built-in kinds, and the kinds of established `CustomResourceDefinition`s.
//!
//! A registry is immutable. A change of a CRD or an `APIService` creates a new one, which replaces it; a request keeps
//! the registry with which it began.

mod api_resource;
mod built_in_kinds;
mod custom;
mod definitions;
mod discovery;
pub(crate) mod kind;
mod resource;
mod type_meta;
mod version_order;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};

use serde::Deserialize;
use serde_json::Value;

use self::version_order::version_order;
pub(crate) use self::{
    api_resource::ApiResource,
    built_in_kinds::{BuiltInKinds, StoreRoles},
    custom::Custom,
    discovery::{aggregated_apis, aggregated_core, group, groups, resources},
    kind::Kind,
    resource::Resource,
    type_meta::TypeMeta,
};
use crate::status::GroupResource;

/// All served resources. It is replaced as a whole when a CRD or `APIService` changes.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    /// Resources by group, version and plural name.
    resources: HashMap<(String, String, String), Arc<Resource>>,
    /// Groups with their versions, the preferred one first.
    groups: BTreeMap<String, Vec<String>>,
    /// The built-in groups, in the order of kube-apiserver.
    built_in_groups: Vec<String>,
    /// Groups and versions that an `APIService` delegates to another server.
    remote: BTreeSet<(String, String)>,
}

/// A group and version with its resources, as in `data/resources.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    group_version: String,
    resources: Vec<ApiResource>,
}

impl Registry {
    /// Returns the registry of these built-in kinds. A resource without one of them has [`Kind::DEFAULT`].
    pub(crate) fn from_kinds(kinds: &[&'static Kind]) -> Self {
        let groups: Vec<Group> =
            serde_json::from_str(include_str!("../../data/resources.json")).expect("the file is generated and tested");
        let mut registry = Self::default();
        for Group { group_version, resources } in groups {
            let (group, version) = group_version.split_once('/').unwrap_or(("", &group_version));
            if !registry.is_built_in(group) {
                registry.built_in_groups.push(group.to_owned());
            }
            let (subresources, whole): (Vec<_>, Vec<_>) =
                resources.into_iter().partition(|listed| listed.name.contains('/'));
            for listed in whole {
                let prefix = format!("{}/", listed.name);
                let subresources = subresources.iter().filter(|sub| sub.name.starts_with(&prefix)).cloned().collect();
                let resource = GroupResource::new(group, &listed.name);
                let kind = kinds.iter().find(|kind| kind.is_of(&resource)).copied().unwrap_or(&Kind::DEFAULT);
                registry.add(Resource {
                    id: resource,
                    version: version.into(),
                    list_kind: format!("{}List", listed.kind),
                    listed,
                    subresources,
                    kind,
                    custom: None,
                    built_in: OnceLock::new(),
                });
            }
        }
        registry
    }

    /// Adds a resource in one version. Versions of a group keep the order in which they are added.
    fn add(&mut self, resource: Resource) {
        let versions = self.groups.entry(resource.id.group.clone()).or_default();
        if !versions.contains(&resource.version) {
            versions.push(resource.version.clone());
        }
        let key = (resource.id.group.clone(), resource.version.clone(), resource.id.resource.clone());
        self.resources.insert(key, Arc::new(resource));
    }

    /// Returns the resource if this version of it is served.
    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Resource>> {
        self.resources.get(&(group.into(), version.into(), plural.into())).cloned()
    }

    /// Returns the resource in its most preferred served version.
    pub(crate) fn any_version(&self, resource: &GroupResource) -> Option<Arc<Resource>> {
        let versions = self.groups.get(&resource.group)?;
        versions.iter().find_map(|version| self.get(&resource.group, version, &resource.resource))
    }

    /// Returns the resource of an `apiVersion` and a kind. An all-lowercase kind matches, too (`NewDiscoveryRESTMapper`
    /// of client-go).
    pub(crate) fn find_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is = |resource: &&Arc<Resource>| {
            let own_kind = resource.kind_name();
            let is_kind =
                own_kind == kind || (own_kind.eq_ignore_ascii_case(kind) && kind == kind.to_ascii_lowercase());
            is_kind && resource.version == version && resource.id.group == group
        };
        self.all().find(is)
    }

    /// Returns the resource in all of its served versions.
    pub(crate) fn versions_of(&self, resource: &GroupResource) -> impl Iterator<Item = Arc<Resource>> {
        let versions = self.groups.get(&resource.group).into_iter().flatten();
        versions.filter_map(|version| self.get(&resource.group, version, &resource.resource))
    }

    /// Returns `true` if this server serves the version of the group.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.groups.get(group).is_some_and(|versions| versions.iter().any(|served| served == version))
    }

    /// Returns `true` if a group has built-in kinds.
    pub(crate) fn is_built_in(&self, group: &str) -> bool {
        self.built_in_groups.iter().any(|built_in| built_in == group)
    }

    /// Returns the resources in all versions, in no particular order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Sets the groups and versions that these `APIService`s delegate to other servers. Local ones (without
    /// `spec.service`) are ignored.
    #[must_use]
    pub(crate) fn with_services<'a>(mut self, services: impl Iterator<Item = &'a Value>) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let remote = services.map(|service| &service["spec"]).filter(|spec| spec["service"].is_object());
        self.remote = remote.map(|spec| (text(&spec["group"]), text(&spec["version"]))).collect();
        self
    }

    /// Returns `true` if the path is below a group and version that is delegated to another server.
    pub(crate) fn is_remote(&self, path: &str) -> bool {
        let mut parts = path.trim_start_matches('/').splitn(4, '/');
        let (Some("apis"), Some(group), Some(version)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        self.has_remote() && self.remote.contains(&(group.to_owned(), version.to_owned()))
    }

    /// Returns `true` if any group is delegated to another server.
    pub(crate) fn has_remote(&self) -> bool {
        !self.remote.is_empty()
    }

    /// Returns the versions of a group in discovery order: first this server's, then delegated ones.
    fn listed_versions(&self, group: &str) -> Vec<&str> {
        let mut versions: Vec<&str> = self.groups.get(group).into_iter().flatten().map(String::as_str).collect();
        let remote = self.remote.iter().filter(|(name, _)| name == group).map(|(_, version)| version.as_str());
        let mut remote: Vec<_> = remote.filter(|version| !versions.contains(version)).collect();
        remote.sort_by_key(|version| std::cmp::Reverse(version_order(version)));
        versions.extend(remote);
        versions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployments_have_a_scale_of_another_group() {
        let deployments = Registry::from_kinds(&[]).get("apps", "v1", "deployments").unwrap();
        let scale = deployments.subresource("scale").unwrap();
        assert_eq!((scale.group.as_deref(), scale.kind.as_str()), (Some("autoscaling"), "Scale"));
        assert!(
            deployments.has_status() && deployments.allows("scale", "patch") && !deployments.allows("scale", "delete")
        );
    }
}
