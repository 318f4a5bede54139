//! Adds the resources of established `CustomResourceDefinition`s to the registry.

use std::sync::{Arc, OnceLock};

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::digest;
use serde_json::Value;

use super::{ApiResource, Custom, Kind, Registry, Resource, version_order};
use crate::{crd, field_errors::text, metadata::Scope, status::GroupResource};

impl Registry {
    /// Adds the served versions of established CRDs and sorts the versions of each group by preference.
    #[must_use]
    pub(crate) fn with_definitions<'a>(mut self, definitions: impl Iterator<Item = &'a Value>) -> Self {
        definitions.for_each(|definition| self.add_definition(definition));
        for versions in self.groups.values_mut() {
            versions.sort_by_key(|version| std::cmp::Reverse(version_order(version)));
        }
        self
    }

    /// Adds the served versions of one CRD; does nothing before it is established. Names are the accepted ones and not
    /// the names in the spec: a name that another CRD holds is never served.
    fn add_definition(&mut self, definition: &Value) {
        const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
        if !crd::is_established(definition) {
            return;
        }
        let spec = &definition["spec"];
        let text = |value: &Value| text(value).to_owned();
        let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
        let (names, group) = (&definition["status"]["acceptedNames"], text(&spec["group"]));
        let scope = if spec["scope"] == "Namespaced" { Scope::Namespaced } else { Scope::Cluster };
        let (plural, kind) = (text(&names["plural"]), text(&names["kind"]));
        let id = GroupResource::new(&group, &plural);
        let all = || spec["versions"].as_array().into_iter().flatten();
        let versions: Arc<[Value]> = all().cloned().collect();
        let stored = all().find(|version| version["storage"] == true).unwrap_or(&Value::Null);
        let hash = (stored["served"] == true).then(|| storage_version_hash([&group, &text(&stored["name"]), &kind]));
        let usable = all().filter(|version| version["served"] == true && version["deprecated"] != true);
        let newest = usable.filter_map(|version| version["name"].as_str()).max_by_key(|other| version_order(other));
        for version in all().filter(|version| version["served"] == true) {
            let name = text(&version["name"]);
            if self.shadows_built_in(&id, &name) {
                continue;
            }
            let whole = ApiResource {
                singular_name: text(&names["singular"]),
                short_names: texts(&names["shortNames"]),
                categories: texts(&names["categories"]),
                storage_version_hash: hash.clone(),
                ..ApiResource::for_custom(plural.clone(), &kind, scope, &VERBS)
            };
            let subresources = whole.subresources_of(version);
            let warning = (version["deprecated"] == true).then(|| {
                let own = version["deprecationWarning"].as_str();
                own.map_or_else(|| deprecation(spec, &name, newest), str::to_owned)
            });
            self.add(Resource {
                id: id.clone(),
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

    /// Returns `true` if the version of the group is built in, or the resource in any version. A CRD does not replace
    /// them: kube-apiserver serves its own versions before the CRD's. The objects of such a CRD would be in the
    /// table of the built-in kind, without its rules: roles, for example, would be written without the check against
    /// privilege escalation.
    fn shadows_built_in(&self, resource: &GroupResource, version: &str) -> bool {
        let mut own = self.all().filter(|own| own.custom.is_none() && own.id.group == resource.group);
        self.is_built_in(&resource.group)
            && own.any(|own| own.version == version || own.id.resource == resource.resource)
    }
}

/// Returns the hash that servers of a cluster use to compare their storage versions (`StorageVersionHash` of
/// k8s.io/apiserver). The first 8 bytes of the SHA-256 of `GROUP/VERSION/KIND`, in base64.
fn storage_version_hash(parts: [&str; 3]) -> String {
    let digest = digest::digest(&digest::SHA256, parts.join("/").as_bytes());
    BASE64_STANDARD.encode(&digest.as_ref()[..8])
}

/// Returns the default deprecation warning of a version, with the newest version to use if that is newer.
fn deprecation(spec: &Value, name: &str, newest: Option<&str>) -> String {
    let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
    let better = newest.filter(|newest| version_order(newest) > version_order(name));
    let hint = better.map_or_else(String::new, |better| format!("; use {group}/{better} {kind}"));
    format!("{group}/{name} {kind} is deprecated{hint}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn definitions_do_not_replace_built_in_kinds() {
        let rbac = "rbac.authorization.k8s.io";
        for (group, version, plural, is_served) in [
            (rbac, "v1", "clusterroles", false),
            (rbac, "v2", "clusterroles", false),
            (rbac, "v1", "things", false),
            (rbac, "v2", "things", true),
            ("example.com", "v1", "clusterroles", true),
        ] {
            let definition = json!({
                "spec": { "group": group, "scope": "Cluster",
                    "versions": [{ "name": version, "served": true, "storage": true }] },
                "status": { "acceptedNames": { "plural": plural, "kind": "Thing", "listKind": "ThingList" },
                    "conditions": [{ "type": "Established", "status": "True" }] },
            });
            let registry = Registry::from_kinds(&[]).with_definitions(std::iter::once(&definition));
            let served = registry.get(group, version, plural);
            let is_custom = served.is_some_and(|resource| resource.custom.is_some());
            assert_eq!(is_custom, is_served, "{group} {version} {plural}");
            let roles = registry.get(rbac, "v1", "clusterroles").unwrap();
            assert!(roles.custom.is_none(), "{group} {version} {plural}");
        }
    }
}
