//! The registry of served resources: the built-in kinds, and those of established `CustomResourceDefinition`s.
//!
//! A registry is immutable. A change of a CRD or an `APIService` creates a new one, which replaces it; a request keeps
//! the registry with which it began.

mod discovery;
pub(crate) mod kind;
mod type_meta;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::{
    discovery::{aggregated, aggregated_core, group, groups, resources},
    kind::Kind,
    type_meta::TypeMeta,
};

use crate::{
    crd::{self, Rules},
    metadata::Scope,
    schema::Schema,
    status::GroupResource,
};

/// One resource or subresource in one version, as discovery lists it (`APIResource`).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    /// The plural name, with `/SUBRESOURCE` for a subresource.
    pub(crate) name: String,
    /// The name in the singular; empty for subresources.
    pub(crate) singular_name: String,
    /// `false` for resources without a namespace.
    pub(crate) namespaced: bool,
    /// The group of a subresource with a kind of another group, such as `autoscaling/v1` Scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// The version that belongs to `group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The kind that the resource or subresource takes and returns.
    pub(crate) kind: String,
    /// The verbs in the order of kube-apiserver.
    pub(crate) verbs: Vec<String>,
    /// Names for kubectl, such as `po`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) short_names: Vec<String>,
    /// Categories for kubectl, such as `all`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
    /// Identifies the storage version; see `storage_version_hash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) storage_version_hash: Option<String>,
}

impl Listed {
    /// Creates the entry of a custom resource or of its subresource.
    fn of_custom(name: String, kind: &str, scope: Scope, verbs: &[&str]) -> Self {
        Self {
            name,
            singular_name: String::new(),
            namespaced: scope == Scope::Namespaced,
            group: None,
            version: None,
            kind: kind.into(),
            verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
            short_names: Vec::new(),
            categories: Vec::new(),
            storage_version_hash: None,
        }
    }

    /// Returns the entries of the subresources that a version in a CRD has.
    fn subresources_of(&self, version: &Value) -> Vec<Self> {
        const VERBS: &[&str] = &["get", "patch", "update"];
        let subresource =
            |name: &str, kind: &str| Self::of_custom(format!("{}/{name}", self.name), kind, self.scope(), VERBS);
        let has = |name: &str| version["subresources"][name].is_object();
        let status = has("status").then(|| subresource("status", &self.kind));
        let (group, version) = (Some("autoscaling".into()), Some("v1".into()));
        let scale = has("scale").then(|| Self { group, version, ..subresource("scale", "Scale") });
        status.into_iter().chain(scale).collect()
    }

    /// Returns the scope of the kind.
    pub(crate) fn scope(&self) -> Scope {
        if self.namespaced { Scope::Namespaced } else { Scope::Cluster }
    }
}

/// One version of a resource, with its kind and schema.
#[derive(Debug)]
pub(crate) struct Resource {
    /// The group and the plural name.
    pub(crate) id: GroupResource,
    /// The version of this value. Each served version of a resource has such a value.
    pub(crate) version: String,
    /// The entry in discovery.
    pub(crate) listed: Listed,
    /// The entries of the subresources in discovery; their names include the resource: `deployments/scale`.
    pub(crate) subresources: Vec<Listed>,
    /// The kind of a list, such as `PodList`.
    pub(crate) list_kind: String,
    /// The kind, which has the rules of its objects; `Kind::CUSTOM` for all custom resources.
    pub(crate) kind: &'static Kind,
    /// The part of the CRD; `None` for a built-in kind.
    pub(crate) custom: Option<Custom>,
    /// Cache for the schema of a built-in kind, which a request reads several times.
    built_in: OnceLock<Option<Schema<'static>>>,
}

/// The part of a CRD that one version of its resource needs.
pub(crate) struct Custom {
    /// The entry in `spec.versions`.
    pub(crate) version: Value,
    /// Its `openAPIV3Schema`; null if it has none.
    pub(crate) schema: Value,
    /// All of `spec.versions`, shared between the resources of the CRD.
    pub(crate) versions: Arc<[Value]>,
    /// The `Warning` header of each response, if the version is deprecated.
    pub(crate) warning: Option<String>,
    /// `spec.conversion`: the strategy and the webhook that convert between versions.
    pub(crate) conversion: Value,
    /// The name of the version in which objects are stored.
    pub(crate) storage: String,
    /// `true` while the objects of the CRD are being deleted. Discovery then no longer lists the verbs that create or
    /// change objects.
    ends: bool,
    /// Cache for the compiled CEL rules.
    rules: OnceLock<Rules>,
}

impl std::fmt::Debug for Custom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Custom").field("version", &self.version["name"]).finish_non_exhaustive()
    }
}

impl Custom {
    /// Returns the schema of another version, even if it is not served.
    ///
    /// `None` for a version that the CRD does not have, or that has no schema.
    pub(crate) fn schema_of(&self, version: &str) -> Option<Schema<'_>> {
        let version = self.versions.iter().find(|declared| declared["name"] == version)?;
        let schema = &version["schema"]["openAPIV3Schema"];
        schema.is_object().then(|| Schema::structural(schema))
    }

    /// Returns the version of an `apiVersion`, without its group.
    pub(crate) fn version_of(api_version: &str) -> &str {
        api_version.rsplit('/').next().unwrap_or_default()
    }

    /// Prunes and defaults an object that was read from the store. It uses the schema of the object's stored version,
    /// which may have changed since the object was written.
    ///
    /// If the CRD no longer has the version, the object is unchanged.
    pub(crate) fn read(&self, object: &mut Value) {
        let version = Self::version_of(object["apiVersion"].as_str().unwrap_or_default());
        if let Some(schema) = self.schema_of(version) {
            crd::prune(schema, object);
            crd::default(schema, object);
        }
    }

    /// Returns the CEL rules of the schema, compiled on first use.
    ///
    /// A change of the CRD creates a new value, so the cache is never out of date.
    pub(crate) fn rules(&self) -> &Rules {
        self.rules.get_or_init(|| Rules::compile(Schema::structural(&self.schema)))
    }
}

impl Resource {
    /// Returns the `apiVersion` of objects: `GROUP/VERSION`, or `VERSION` in the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.id.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.id.group, self.version) }
    }

    /// Returns the kind as objects name it, such as `Pod`.
    pub(crate) fn kind_name(&self) -> &str {
        &self.listed.kind
    }

    /// Returns `true` if the resource, or the subresource if it is not empty, supports the verb.
    ///
    /// A subresource that does not exist supports nothing.
    pub(crate) fn allows(&self, subresource: &str, verb: &str) -> bool {
        let listed = if subresource.is_empty() { Some(&self.listed) } else { self.subresource(subresource) };
        listed.is_some_and(|listed| listed.verbs.iter().any(|allowed| allowed == verb))
    }

    /// Returns the entry in discovery. While a CRD is being deleted, it lists no verbs that create or change objects.
    fn shown(&self) -> Cow<'_, Listed> {
        if self.custom.as_ref().is_none_or(|custom| !custom.ends) {
            return Cow::Borrowed(&self.listed);
        }
        let mut listed = self.listed.clone();
        listed.verbs.retain(|verb| !["create", "patch", "update"].contains(&verb.as_str()));
        Cow::Owned(listed)
    }

    /// Returns the discovery entry of a subresource by its name without the resource, such as `scale`.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Listed> {
        self.subresources
            .iter()
            .find(|sub| sub.name.split_once('/').is_some_and(|(_, subresource)| subresource == name))
    }

    /// Returns `true` if the resource has the subresource `status`.
    pub(crate) fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Returns the custom resource in another of its versions, even if that is not served; `None` for built-in kinds.
    ///
    /// Conversion needs it: objects may be stored in a version that is not served. It has no warning.
    pub(crate) fn in_version(&self, name: &str) -> Option<Self> {
        let custom = self.custom.as_ref()?;
        let version = custom.versions.iter().find(|version| version["name"] == name)?;
        Some(Self {
            id: self.id.clone(),
            version: name.to_owned(),
            listed: self.listed.clone(),
            subresources: self.subresources.clone(),
            list_kind: self.list_kind.clone(),
            kind: self.kind,
            custom: Some(Custom {
                version: version.clone(),
                schema: version["schema"]["openAPIV3Schema"].clone(),
                versions: custom.versions.clone(),
                warning: None,
                conversion: custom.conversion.clone(),
                storage: custom.storage.clone(),
                ends: custom.ends,
                rules: OnceLock::new(),
            }),
            built_in: OnceLock::new(),
        })
    }

    /// Returns the schema of this version; `None` if the version has no schema.
    pub(crate) fn schema(&self) -> Option<Schema<'_>> {
        match &self.custom {
            Some(custom) => custom.schema.is_object().then(|| Schema::structural(&custom.schema)),
            None => *self.built_in.get_or_init(|| Schema::built_in(&self.api_version(), self.kind_name())),
        }
    }
}

/// All served resources. It is replaced as a whole when a CRD or `APIService` changes.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    /// Resources by group, version and plural name.
    resources: HashMap<(String, String, String), Arc<Resource>>,
    /// Groups with their versions, the preferred one first.
    ///
    /// A group is present as long as one of its versions is served.
    groups: BTreeMap<String, Vec<String>>,
    /// Groups and versions that an `APIService` delegates to another server.
    remote: BTreeSet<(String, String)>,
}

/// A group and version with its resources, as in `data/resources.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    group_version: String,
    resources: Vec<Listed>,
}

impl Registry {
    /// Returns the registry of these built-in kinds. A resource without one of them has [`Kind::DEFAULT`].
    ///
    /// # Panics
    /// If `data/resources.json` is not valid.
    pub(crate) fn of_kinds(kinds: &[&'static Kind]) -> Self {
        let groups: Vec<Group> =
            serde_json::from_str(include_str!("../../data/resources.json")).expect("the file is generated and tested");
        let mut registry = Self { resources: HashMap::new(), groups: BTreeMap::new(), remote: BTreeSet::new() };
        for Group { group_version, resources } in groups {
            let (group, version) = group_version.split_once('/').unwrap_or(("", &group_version));
            let (subresources, whole): (Vec<_>, Vec<_>) =
                resources.into_iter().partition(|listed| listed.name.contains('/'));
            for listed in whole {
                let prefix = format!("{}/", listed.name);
                let subresources = subresources.iter().filter(|sub| sub.name.starts_with(&prefix)).cloned().collect();
                let list_kind = format!("{}List", listed.kind);
                let resource = GroupResource::new(group, &listed.name);
                let kind = kinds.iter().find(|kind| kind.is_of(&resource)).copied().unwrap_or(&Kind::DEFAULT);
                registry.add(Resource {
                    id: resource,
                    version: version.into(),
                    listed,
                    subresources,
                    list_kind,
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
    ///
    /// For most purposes all versions of a resource are equivalent.
    pub(crate) fn any_version(&self, resource: &GroupResource) -> Option<Arc<Resource>> {
        let versions = self.groups.get(&resource.group)?;
        versions.iter().find_map(|version| self.get(&resource.group, version, &resource.resource))
    }

    /// Returns the resource of an `apiVersion` and a kind. An all-lowercase kind matches, too (`PriorityRESTMapper` of
    /// client-go).
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
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
        self.all().any(|resource| resource.id.group == group && resource.custom.is_none())
    }

    /// Returns the resources in all versions, in no particular order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Adds the served versions of established CRDs and sorts the versions of each group by preference.
    ///
    /// All groups are sorted, the built-in ones too.
    #[must_use]
    pub(crate) fn with_definitions<'a>(self, definitions: impl Iterator<Item = &'a Value>) -> Self {
        let mut registry = self;
        for definition in definitions {
            registry.add_definition(definition);
        }
        for versions in registry.groups.values_mut() {
            versions.sort_by_key(|version| std::cmp::Reverse(version_order(version)));
        }
        registry
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
    ///
    /// Only paths below `/apis/GROUP/VERSION` can be delegated.
    pub(crate) fn is_remote(&self, path: &str) -> bool {
        let mut parts = path.trim_start_matches('/').splitn(4, '/');
        let Some(("apis", group, version)) =
            parts.next().zip(parts.next()).zip(parts.next()).map(|((a, b), c)| (a, b, c))
        else {
            return false;
        };
        !self.remote.is_empty() && self.remote.contains(&(group.to_owned(), version.to_owned()))
    }

    /// Returns `true` if any group is delegated to another server.
    pub(crate) fn has_remote(&self) -> bool {
        !self.remote.is_empty()
    }

    /// Returns the versions of a group in discovery order: those of this server, then delegated ones.
    fn listed_versions(&self, group: &str) -> Vec<&str> {
        let own = self.groups.get(group).into_iter().flatten().map(String::as_str);
        let mut remote: Vec<&str> = self
            .remote
            .iter()
            .filter(|(group_name, _)| group_name == group)
            .map(|(_, version)| version.as_str())
            .collect();
        remote.sort_by_key(|version| std::cmp::Reverse(version_order(version)));
        let mut versions: Vec<&str> = own.collect();
        remote.retain(|version| !versions.contains(version));
        versions.extend(remote);
        versions
    }

    /// Adds the served versions of one CRD; does nothing before it is established.
    ///
    /// Names are the accepted ones and not those of the spec: a name that another CRD holds is never served. The
    /// subresource `scale` has the kind `Scale` of `autoscaling/v1`.
    fn add_definition(&mut self, definition: &Value) {
        const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
        if !crd::is_established(definition) {
            return;
        }
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
        let (names, group) = (&definition["status"]["acceptedNames"], text(&spec["group"]));
        let scope = if spec["scope"] == "Namespaced" { Scope::Namespaced } else { Scope::Cluster };
        let (plural, kind) = (text(&names["plural"]), text(&names["kind"]));
        let all = || spec["versions"].as_array().into_iter().flatten();
        let versions: Arc<[Value]> = all().cloned().collect();
        let stored = all().find(|version| version["storage"] == true).unwrap_or(&Value::Null);
        let hash = (stored["served"] == true).then(|| storage_version_hash([&group, &text(&stored["name"]), &kind]));
        for version in all().filter(|version| version["served"] == true) {
            let whole = Listed {
                singular_name: text(&names["singular"]),
                short_names: texts(&names["shortNames"]),
                categories: texts(&names["categories"]),
                storage_version_hash: hash.clone(),
                ..Listed::of_custom(plural.clone(), &kind, scope, &VERBS)
            };
            let subresources = whole.subresources_of(version);
            let name = text(&version["name"]);
            let warning = (version["deprecated"] == true).then(|| {
                let own = version["deprecationWarning"].as_str();
                own.map_or_else(|| deprecation(spec, &name), str::to_owned)
            });
            self.add(Resource {
                id: GroupResource::new(&group, &plural),
                version: name,
                listed: whole,
                subresources,
                list_kind: text(&names["listKind"]),
                kind: &Kind::CUSTOM,
                custom: Some(Custom {
                    schema: version["schema"]["openAPIV3Schema"].clone(),
                    version: version.clone(),
                    versions: versions.clone(),
                    warning,
                    conversion: spec["conversion"].clone(),
                    storage: text(&stored["name"]),
                    ends: crd::is_ending(definition),
                    rules: OnceLock::new(),
                }),
                built_in: OnceLock::new(),
            });
        }
    }
}

/// Returns the hash by which servers of a cluster compare their storage versions (`StorageVersionHash` of
/// k8s.io/apiserver).
///
/// The first 8 bytes of the SHA-256 of `GROUP/VERSION/KIND`, in base64.
fn storage_version_hash(parts: [&str; 3]) -> String {
    let digest = digest::digest(&digest::SHA256, parts.join("/").as_bytes());
    BASE64_STANDARD.encode(&digest.as_ref()[..8])
}

/// Returns the default deprecation warning of a version, with the newer version to use if there is one.
fn deprecation(spec: &Value, name: &str) -> String {
    let (group, kind) =
        (spec["group"].as_str().unwrap_or_default(), spec["names"]["kind"].as_str().unwrap_or_default());
    let versions = spec["versions"].as_array().into_iter().flatten();
    let usable = versions.filter(|version| version["served"] == true && version["deprecated"] != true);
    let names = usable.filter_map(|version| version["name"].as_str());
    let better =
        names.filter(|other| version_order(other) > version_order(name)).max_by_key(|other| version_order(other));
    let hint = better.map_or_else(String::new, |better| format!("; use {group}/{better} {kind}"));
    format!("{group}/{name} {kind} is deprecated{hint}")
}

/// Returns the sort key of a version: stable above beta above alpha, then by number
/// (`k8s.io/apimachinery/pkg/version/helpers.go`).
///
/// A version of another form comes last, by name. In descending order: `v10`, `v2`, `v1beta2`,
/// `v1alpha1`, `foo`.
fn version_order(version: &str) -> (u8, u32, u32, std::cmp::Reverse<String>) {
    let unknown = || (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return unknown() };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, stage) = rest.split_at(digits);
    let Ok(major) = major.parse() else { return unknown() };
    let (rank, minor) = match stage {
        "" => return (3, major, 0, std::cmp::Reverse(String::new())),
        stage => match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
            (Some(minor), _) => (2, minor),
            (_, Some(minor)) => (1, minor),
            _ => return unknown(),
        },
    };
    minor.parse().map_or_else(|_| unknown(), |minor| (rank, major, minor, std::cmp::Reverse(String::new())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployments_have_a_scale_of_another_group() {
        let deployments = Registry::of_kinds(&[]).get("apps", "v1", "deployments").unwrap();
        let scale = deployments.subresource("scale").unwrap();
        assert_eq!((scale.group.as_deref(), scale.kind.as_str()), (Some("autoscaling"), "Scale"));
        assert!(
            deployments.has_status() && deployments.allows("scale", "patch") && !deployments.allows("scale", "delete")
        );
    }

    #[test]
    fn versions_are_ordered_by_kubernetes_version_priority() {
        let mut versions = ["v1alpha1", "foo", "v10", "v2beta1", "v1", "v2beta2", "v11alpha2"].map(str::to_owned);
        versions.sort_by_key(|version| std::cmp::Reverse(version_order(version)));
        assert_eq!(versions, ["v10", "v1", "v2beta2", "v2beta1", "v11alpha2", "v1alpha1", "foo"]);
    }
}
