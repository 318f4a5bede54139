//! Rules: what is needed, merged as controller-gen merges its markers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Grant, On};

/// A rule, with the declarations that it comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Rule {
    /// API groups; empty text is the core.
    pub groups: BTreeSet<String>,
    /// Resources, with subresources as `pods/eviction`.
    pub resources: BTreeSet<String>,
    /// Names, where the rule is about certain objects.
    pub names: BTreeSet<String>,
    /// Paths that are not about objects.
    pub urls: BTreeSet<String>,
    /// Verbs.
    pub verbs: BTreeSet<String>,
    /// Declarations, as the user wrote them.
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

    /// As in a role.
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

/// Grants of one place in the normal form of controller-gen: verbs of the same resource together, then names, then resources
/// of the same verbs, then groups of the same resources, then paths; sorted.
pub fn rules(grants: &[Grant]) -> Vec<Rule> {
    let rules: Vec<Rule> = grants.iter().map(Rule::of).collect();
    let rules = merge(rules, |r| (r.groups.clone(), r.resources.clone(), r.names.clone(), r.urls.clone()));
    // A rule without names is about all of them: it stays apart.
    let rules =
        merge(rules, |r| (r.groups.clone(), r.resources.clone(), r.names.is_empty(), r.urls.clone(), r.verbs.clone()));
    let rules = merge(rules, |r| (r.groups.clone(), r.names.clone(), r.urls.clone(), r.verbs.clone()));
    let rules = merge(rules, |r| (r.resources.clone(), r.names.clone(), r.urls.clone(), r.verbs.clone()));
    merge(rules, |r| (r.groups.clone(), r.resources.clone(), r.names.clone(), r.verbs.clone()))
}

/// Rules about the same are one, with the declarations of all.
pub(super) fn merged(rules: Vec<Rule>) -> Vec<Rule> {
    merge(rules, |r| (r.groups.clone(), r.resources.clone()))
}

fn merge<K: Ord>(rules: Vec<Rule>, key: impl Fn(&Rule) -> K) -> Vec<Rule> {
    let mut merged: BTreeMap<K, Rule> = BTreeMap::new();
    for rule in rules {
        let known = merged.entry(key(&rule)).or_default();
        known.groups.extend(rule.groups);
        known.resources.extend(rule.resources);
        known.names.extend(rule.names);
        known.urls.extend(rule.urls);
        known.verbs.extend(rule.verbs);
        known.because.extend(rule.because);
    }
    let mut rules: Vec<Rule> = merged.into_values().collect();
    rules.sort();
    rules
}
