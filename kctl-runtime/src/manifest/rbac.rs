//! The declaration as a role: what each relation needs, merged as controller-gen merges its markers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Manifest;
use crate::{
    object::Kind,
    spec::{ControllerSpec, RelationSpec, Role},
};

/// Names in the manifests.
#[derive(Debug, Clone)]
pub struct RbacOptions {
    /// Of all objects.
    pub name: String,
    /// Where the program runs: the namespace of its service account.
    pub namespace: String,
}

/// A rule, with the declarations that it comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// API groups; empty text is the core.
    pub groups: BTreeSet<String>,
    /// Resources, with subresources as `pods/eviction`.
    pub resources: BTreeSet<String>,
    /// Names, where the rule is about certain objects.
    pub names: BTreeSet<String>,
    /// Verbs.
    pub verbs: BTreeSet<String>,
    /// Declarations, as the user wrote them.
    pub because: BTreeSet<String>,
    /// Whether it is about objects in namespaces.
    pub namespaced: bool,
}

fn rule(kind: &Kind, subresource: &str, verbs: &[&str], namespaced: bool, because: &str) -> Rule {
    let one = |text: &str| BTreeSet::from([text.to_owned()]);
    Rule {
        groups: one(&kind.group),
        resources: one(&format!("{}{subresource}", kind.plural)),
        names: BTreeSet::new(),
        verbs: verbs.iter().map(ToString::to_string).collect(),
        because: one(because),
        namespaced,
    }
}

/// What one relation needs.
fn of_relation(controller: &str, relation: &RelationSpec) -> Vec<Rule> {
    let text = match relation.role {
        Role::Primary => format!("{controller}: its primary"),
        _ => format!("{controller}: {}", relation.text),
    };
    let add = |subresource: &str, verbs: &[&str]| rule(&relation.kind, subresource, verbs, relation.namespaced, &text);
    let mut rules = vec![match relation.role {
        Role::Live | Role::LiveCluster => add("", &["get"]),
        _ => add("", &["list", "watch"]),
    }];
    for verb in &relation.verbs {
        rules.push(match *verb {
            "apply" => add("", &["create", "patch"]),
            "status" => add("/status", &["patch"]),
            "scale" => add("/scale", &["patch"]),
            "eviction" => add("/eviction", &["create"]),
            "binding" => add("/binding", &["create"]),
            "token" => add("/token", &["create"]),
            verb => add("", &[verb]),
        });
    }
    rules
}

/// What a controller needs, unmerged.
fn of_controller(spec: &ControllerSpec) -> Vec<Rule> {
    let mut rules = of_relation(&spec.name, &spec.primary);
    let primary = |subresource: &str, because: &str| {
        let because = format!("{}: {because}", spec.name);
        rule(&spec.primary.kind, subresource, &["patch"], spec.primary.namespaced, &because)
    };
    if spec.has_status {
        rules.push(primary("/status", "the status of its primary"));
    }
    if spec.finalizer.is_some() {
        rules.push(primary("", "its finalizer"));
    }
    rules.extend(spec.relations.iter().flat_map(|relation| of_relation(&spec.name, relation)));
    for extra in &spec.rbac {
        let set = |values: &Option<Vec<String>>| values.iter().flatten().cloned().collect::<BTreeSet<_>>();
        rules.push(Rule {
            groups: set(&extra.api_groups),
            resources: set(&extra.resources),
            names: set(&extra.resource_names),
            verbs: extra.verbs.iter().cloned().collect(),
            because: BTreeSet::from([format!("{}: rbac(…)", spec.name)]),
            namespaced: true,
        });
    }
    rules
}

/// The rules of all controllers in the normal form of controller-gen: verbs of the same resource together, then resources
/// of the same verbs, then groups of the same resources; sorted.
pub fn rules(specs: &[ControllerSpec]) -> Vec<Rule> {
    let mut rules: Vec<Rule> = specs.iter().flat_map(of_controller).collect();
    let events =
        Kind { group: "events.k8s.io".into(), version: "v1".into(), kind: "Event".into(), plural: "events".into() };
    rules.push(rule(&events, "", &["create", "patch"], true, "kctl: events"));
    let rules = merge(rules, |rule| (rule.groups.clone(), rule.resources.clone(), rule.names.clone(), rule.namespaced));
    let rules = merge(rules, |rule| (rule.groups.clone(), rule.verbs.clone(), rule.names.clone(), rule.namespaced));
    merge(rules, |rule| (rule.resources.clone(), rule.verbs.clone(), rule.names.clone(), rule.namespaced))
}

fn merge<K: Ord>(rules: Vec<Rule>, key: impl Fn(&Rule) -> K) -> Vec<Rule> {
    let mut merged: BTreeMap<K, Rule> = BTreeMap::new();
    for rule in rules {
        match merged.entry(key(&rule)) {
            std::collections::btree_map::Entry::Vacant(place) => drop(place.insert(rule)),
            std::collections::btree_map::Entry::Occupied(mut place) => {
                let known = place.get_mut();
                known.groups.extend(rule.groups);
                known.resources.extend(rule.resources);
                known.names.extend(rule.names);
                known.verbs.extend(rule.verbs);
                known.because.extend(rule.because);
            }
        }
    }
    let mut rules: Vec<Rule> = merged.into_values().collect();
    rules.sort();
    rules
}

/// Service account, roles and bindings. Controllers of certain namespaces get a role in each of them; what is not in a
/// namespace needs a cluster role.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn rbac(specs: &[ControllerSpec], options: &RbacOptions) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    let RbacOptions { name, namespace } = options;
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": name, "namespace": namespace },
    });
    let mut manifests = vec![Manifest::new(format!("rbac/serviceaccount-{name}.yaml"), account)?];
    let namespaces: BTreeSet<&String> = specs.iter().flat_map(|spec| &spec.namespaces).collect();
    let everywhere = specs.iter().any(|spec| spec.namespaces.is_empty());
    let all = rules(specs);
    let (local, cluster): (Vec<_>, Vec<_>) = all.into_iter().partition(|rule| rule.namespaced && !everywhere);
    if !cluster.is_empty() {
        manifests.push(role("ClusterRole", name, None, &cluster)?);
        manifests.push(binding("ClusterRole", name, options, None)?);
    }
    for place in namespaces.into_iter().filter(|_| !everywhere) {
        manifests.push(role("Role", name, Some(place), &local)?);
        manifests.push(binding("Role", name, options, Some(place))?);
    }
    Ok(manifests)
}

fn file(kind: &str, name: &str, namespace: Option<&String>) -> String {
    let kind = kind.to_lowercase();
    namespace.map_or_else(|| format!("rbac/{kind}-{name}.yaml"), |place| format!("rbac/{kind}-{name}.{place}.yaml"))
}

fn meta(name: &str, namespace: Option<&String>) -> Value {
    namespace.map_or_else(|| json!({ "name": name }), |place| json!({ "name": name, "namespace": place }))
}

/// Binds a role of this name to the program.
pub(super) fn binding(
    role: &str,
    name: &str,
    options: &RbacOptions,
    place: Option<&String>,
) -> Result<Manifest, serde_saphyr::SerializeError> {
    let RbacOptions { name: account, namespace } = options;
    let kind = format!("{role}Binding");
    let object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": meta(name, place),
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": account, "namespace": namespace }],
    });
    Manifest::new(file(&kind, name, place), object)
}

/// A role; each rule says where it comes from.
pub(super) fn role(
    kind: &str,
    name: &str,
    place: Option<&String>,
    rules: &[Rule],
) -> Result<Manifest, serde_saphyr::SerializeError> {
    let head = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": meta(name, place) });
    let mut yaml = serde_saphyr::to_string(&head)?;
    yaml += "rules:\n";
    for rule in rules {
        for because in &rule.because {
            yaml += &format!("# {}\n", because.replace('\n', " "));
        }
        yaml += &serde_saphyr::to_string(&[rule_object(rule)])?;
    }
    let mut object = head;
    object["rules"] = rules.iter().map(rule_object).collect();
    Ok(Manifest { file: file(kind, name, place), object, yaml })
}

fn rule_object(rule: &Rule) -> Value {
    let mut object = json!({ "apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs });
    if !rule.names.is_empty() {
        object["resourceNames"] = json!(rule.names);
    }
    object
}
