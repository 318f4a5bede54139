//! Rules of roles: permissions, merged as controller-gen merges its markers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Permission, PermissionTarget};

/// A rule of a role, with the declarations that it comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub struct Rule {
    /// API groups; an empty string is the core group.
    pub groups: BTreeSet<String>,
    /// Resources, with subresources as in `pods/eviction`.
    pub resources: BTreeSet<String>,
    /// Names of objects, empty for all.
    pub names: BTreeSet<String>,
    /// Non-resource URLs, such as `/metrics`.
    pub urls: BTreeSet<String>,
    /// RBAC verbs.
    pub verbs: BTreeSet<String>,
    /// The declarations that need it, as the user wrote them.
    pub because: BTreeSet<String>,
}

impl Rule {
    fn for_permission(permission: &Permission) -> Self {
        let mut rule = Self {
            verbs: BTreeSet::from([permission.verb.clone()]),
            because: permission.because.clone(),
            ..Self::default()
        };
        match &permission.target {
            PermissionTarget::Url(url) => drop(rule.urls.insert(url.clone())),
            PermissionTarget::Resource { group, resource, name } => {
                rule.groups.insert(group.clone());
                rule.resources.insert(resource.clone());
                rule.names.extend((!name.is_empty()).then(|| name.clone()));
            }
        }
        rule
    }

    /// Returns the rule as JSON, for a role.
    pub(super) fn object(&self) -> Value {
        let mut object = json!({ "verbs": self.verbs });
        let lists = [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ];
        for (field, values) in lists.into_iter().filter(|(_, values)| !values.is_empty()) {
            object[field] = json!(values);
        }
        object
    }
}

/// Merges permissions of one scope into few rules, sorted.
///
/// The order is controller-gen's (`pkg/rbac/parser.go`): verbs of the same resource, then names, resources of
/// the same verbs, groups of the same resources, and URLs.
///
/// ```
/// use std::collections::BTreeSet;
/// use kctl_runtime::manifest::{Permission, PermissionTarget, PermissionScope, rules};
///
/// let permission = |resource: &str, verb: &str| Permission {
///     scope: PermissionScope::Everywhere,
///     target: PermissionTarget::Resource { group: String::new(), resource: resource.into(), name: String::new() },
///     verb: verb.into(),
///     because: BTreeSet::from([format!("app: {resource}")]),
///     framework: false,
/// };
/// let merged = rules(&[permission("pods", "list"), permission("pods", "watch"), permission("secrets", "list"), permission("secrets", "watch")]);
/// assert_eq!(merged.len(), 1);
/// assert_eq!(merged[0].resources, BTreeSet::from(["pods".to_owned(), "secrets".to_owned()]));
/// ```
pub fn rules(permissions: &[Permission]) -> Vec<Rule> {
    let rules: Vec<Rule> = permissions.iter().map(Rule::for_permission).collect();
    let rules = merge(rules, |r| (r.groups.clone(), r.resources.clone(), r.names.clone(), r.urls.clone()));
    // A rule without names is for all objects, so it is not merged with one that names some.
    let rules =
        merge(rules, |r| (r.groups.clone(), r.resources.clone(), r.names.is_empty(), r.urls.clone(), r.verbs.clone()));
    let rules = merge(rules, |r| (r.groups.clone(), r.names.clone(), r.urls.clone(), r.verbs.clone()));
    let rules = merge(rules, |r| (r.resources.clone(), r.names.clone(), r.urls.clone(), r.verbs.clone()));
    merge(rules, |r| (r.groups.clone(), r.resources.clone(), r.names.clone(), r.verbs.clone()))
}

/// Merges rules about the same resources, with all their reasons.
pub(super) fn merge_same_resources(rules: Vec<Rule>) -> Vec<Rule> {
    merge(rules, |r| (r.groups.clone(), r.resources.clone()))
}

fn merge<K: Ord>(rules: Vec<Rule>, key: impl Fn(&Rule) -> K) -> Vec<Rule> {
    let mut merged: BTreeMap<K, Rule> = BTreeMap::new();
    for rule in rules {
        let rule_parts = merged.entry(key(&rule)).or_default();
        rule_parts.groups.extend(rule.groups);
        rule_parts.resources.extend(rule.resources);
        rule_parts.names.extend(rule.names);
        rule_parts.urls.extend(rule.urls);
        rule_parts.verbs.extend(rule.verbs);
        rule_parts.because.extend(rule.because);
    }
    let mut rules: Vec<Rule> = merged.into_values().collect();
    rules.sort();
    rules
}
