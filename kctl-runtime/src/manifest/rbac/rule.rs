//! Rules of roles: permissions, merged as controller-gen merges its markers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Grant, On};

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
    fn of(grant: &Grant) -> Self {
        let mut rule =
            Self { verbs: BTreeSet::from([grant.verb.clone()]), because: grant.because.clone(), ..Self::default() };
        match &grant.on {
            On::Url(url) => drop(rule.urls.insert(url.clone())),
            On::Resource { group, resource, name } => {
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
/// use kctl_runtime::manifest::{Grant, On, GrantScope, rules};
///
/// let grant = |resource: &str, verb: &str| Grant {
///     scope: GrantScope::Everywhere,
///     on: On::Resource { group: String::new(), resource: resource.into(), name: String::new() },
///     verb: verb.into(),
///     because: BTreeSet::from([format!("app: {resource}")]),
///     framework: false,
/// };
/// let merged = rules(&[grant("pods", "list"), grant("pods", "watch"), grant("secrets", "list"), grant("secrets", "watch")]);
/// assert_eq!(merged.len(), 1);
/// assert_eq!(merged[0].resources, BTreeSet::from(["pods".to_owned(), "secrets".to_owned()]));
/// ```
pub fn rules(grants: &[Grant]) -> Vec<Rule> {
    let rules: Vec<Rule> = grants.iter().map(Rule::of).collect();
    let rules = merge(rules, |r| (r.groups.clone(), r.resources.clone(), r.names.clone(), r.urls.clone()));
    // A rule without names is for all objects, so it is not merged with one that names some.
    let rules =
        merge(rules, |r| (r.groups.clone(), r.resources.clone(), r.names.is_empty(), r.urls.clone(), r.verbs.clone()));
    let rules = merge(rules, |r| (r.groups.clone(), r.names.clone(), r.urls.clone(), r.verbs.clone()));
    let rules = merge(rules, |r| (r.resources.clone(), r.names.clone(), r.urls.clone(), r.verbs.clone()));
    merge(rules, |r| (r.groups.clone(), r.resources.clone(), r.names.clone(), r.verbs.clone()))
}

/// Merges rules about the same resources, with all their reasons.
pub(super) fn merged(rules: Vec<Rule>) -> Vec<Rule> {
    merge(rules, |r| (r.groups.clone(), r.resources.clone()))
}

/// Merges rules with equal keys.
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
