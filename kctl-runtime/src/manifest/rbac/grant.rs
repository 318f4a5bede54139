//! The permissions that declarations need, one verb on one resource in one scope at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::scope::Scopes;
use crate::{
    object::Kind,
    spec::{ControllerSpec, ExtraRule, RelationSpec, Role},
};

/// Matches every group, resource or verb in a rule.
const ALL: &str = "*";

/// The scope in which a permission is valid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantScope {
    /// All namespaces, and cluster-scoped objects: a `ClusterRole`.
    Everywhere,
    /// One namespace: a Role.
    Namespace(String),
}

/// The object of a permission.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// Objects of a resource.
    Resource {
        /// API group, empty for the core group.
        group: String,
        /// Plural, with the subresource as in `pods/eviction`.
        resource: String,
        /// Name of one object, empty for all.
        name: String,
    },
    /// A non-resource URL, such as `/metrics`.
    Url(String),
}

/// One verb on one resource in one scope: the smallest part that a role can lack.
///
/// `kctl`'s role test runs a program without each of its grants in turn.
///
/// ```
/// use std::collections::BTreeSet;
/// use kctl_runtime::manifest::{Grant, On, GrantScope};
///
/// let list = |scope| Grant {
///     scope,
///     on: On::Resource { group: "apps".into(), resource: "deployments".into(), name: String::new() },
///     verb: "list".into(),
///     because: BTreeSet::new(),
///     framework: false,
/// };
/// let (everywhere, shop) = (list(GrantScope::Everywhere), list(GrantScope::Namespace("shop".into())));
/// assert!(everywhere.covers(&shop) && !shop.covers(&everywhere));
/// assert_eq!(shop.to_string(), "list deployments.apps in namespace shop");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// The scope in which it is valid.
    pub scope: GrantScope,
    /// The objects.
    pub on: On,
    /// The RBAC verb, such as `list`.
    pub verb: String,
    /// The declarations that need it, as the user wrote them.
    pub because: BTreeSet<String>,
    /// `true` if kctl needs it for each declaration of this form: `list` and `watch` of a cache, and events.
    pub framework: bool,
}

impl Grant {
    /// Returns `true` if this permission includes the other one.
    ///
    /// Names of subresources, `*` and URLs with a trailing `*` match as in an RBAC authorizer.
    pub fn covers(&self, other: &Self) -> bool {
        let in_scope = self.scope == GrantScope::Everywhere || self.scope == other.scope;
        let on = match (&self.on, &other.on) {
            (On::Url(own), On::Url(requested)) => match own.strip_suffix('*') {
                Some(start) => requested.starts_with(start),
                None => own == requested,
            },
            (On::Resource { group, resource, name }, On::Resource { group: g, resource: r, name: n }) => {
                let subresource = resource
                    .strip_prefix("*/")
                    .is_some_and(|sub| r.split_once('/').is_some_and(|(_, requested)| requested == sub));
                (group == ALL || group == g)
                    && (resource == ALL || resource == r || subresource)
                    && (name.is_empty() || name == n)
            }
            _ => false,
        };
        in_scope && on && (self.verb == ALL || self.verb == other.verb)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.on {
            On::Url(path) => write!(f, "{} {path}", self.verb)?,
            On::Resource { group, resource, name } => {
                write!(f, "{} {resource}", self.verb)?;
                if !group.is_empty() {
                    write!(f, ".{group}")?;
                }
                if !name.is_empty() {
                    write!(f, " {name}")?;
                }
            }
        }
        match &self.scope {
            GrantScope::Everywhere => Ok(()),
            GrantScope::Namespace(namespace) => write!(f, " in namespace {namespace}"),
        }
    }
}

/// Returns the problem of a hand-written rule and the remedy, if the rule allows nothing or an API server
/// would reject it.
///
/// ```
/// use k8s_openapi::api::rbac::v1::PolicyRule;
/// use kctl_runtime::manifest::rule_problem;
///
/// let rule = PolicyRule {
///     verbs: vec!["get".into()],
///     resources: Some(vec!["deployments".into()]),
///     ..PolicyRule::default()
/// };
/// let (problem, help) = rule_problem(&rule).expect("there is no group");
/// assert_eq!(problem, "it has no API groups");
/// assert!(help.contains("the core group is `\"\"`"));
/// ```
pub fn rule_problem(rule: &PolicyRule) -> Option<(&'static str, &'static str)> {
    let is_empty = |list: &Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
    let (groups, resources) = (is_empty(&rule.api_groups), is_empty(&rule.resources));
    if rule.verbs.is_empty() {
        return Some(("it has no verbs", "write `verbs: vec![\"get\".into()]`"));
    }
    if !is_empty(&rule.non_resource_urls) {
        let is_mixed = !groups || !resources || !is_empty(&rule.resource_names);
        return is_mixed.then_some((
            "it is about objects and about paths, which API servers refuse",
            "write one rule with `api_groups` and `resources`, and one with `non_resource_urls`",
        ));
    }
    match (groups, resources) {
        (false, false) => None,
        (true, false) => {
            Some(("it has no API groups", "write `api_groups: Some(vec![\"apps\".into()])`; the core group is `\"\"`"))
        }
        (false, true) => Some(("it has no resources", "write `resources: Some(vec![\"deployments\".into()])`")),
        (true, true) => Some((
            "it is about nothing",
            "write `api_groups` and `resources`, or `non_resource_urls` for paths such as `/metrics`",
        )),
    }
}

/// Splits a rule into its parts: each verb on each resource and name, and on each URL.
///
/// ```
/// use k8s_openapi::api::rbac::v1::PolicyRule;
/// use kctl_runtime::manifest::{GrantScope, grants_of_rule};
///
/// let rule = PolicyRule {
///     api_groups: Some(vec!["".into()]),
///     resources: Some(vec!["pods".into(), "secrets".into()]),
///     verbs: vec!["get".into(), "list".into()],
///     ..PolicyRule::default()
/// };
/// assert_eq!(grants_of_rule(&rule, &GrantScope::Everywhere).len(), 4);
/// ```
pub fn grants_of_rule(rule: &PolicyRule, scope: &GrantScope) -> Vec<Grant> {
    let grant = |on: On, verb: &String| {
        let because = BTreeSet::new();
        Grant { scope: scope.clone(), on, verb: verb.clone(), because, framework: false }
    };
    let mut grants = Vec::new();
    let any = vec![String::new()];
    let names = rule.resource_names.as_ref().filter(|names| !names.is_empty()).unwrap_or(&any);
    for verb in &rule.verbs {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for name in names {
                    let (group, resource, name) = (group.clone(), resource.clone(), name.clone());
                    grants.push(grant(On::Resource { group, resource, name }, verb));
                }
            }
        }
        grants.extend(rule.non_resource_urls.iter().flatten().map(|url| grant(On::Url(url.clone()), verb)));
    }
    grants
}

/// Collects permissions, each once, with the reasons of all that need it.
#[derive(Default)]
struct Grants(BTreeMap<(GrantScope, On, String), Grant>);

impl Grants {
    fn add(&mut self, grant: Grant) {
        let key = (grant.scope.clone(), grant.on.clone(), grant.verb.clone());
        let merged = self.0.entry(key).or_insert_with(|| grant.clone());
        merged.because.extend(grant.because);
        merged.framework |= grant.framework;
    }

    /// Adds the permissions for verbs that the user declared.
    fn add_declared(&mut self, scopes: &[GrantScope], on: &On, verbs: &[&str], because: &str) {
        each_grant(scopes, on, verbs, because).for_each(|grant| self.add(grant));
    }

    /// Adds the permissions for verbs that kctl needs for each declaration of this form.
    fn add_framework(&mut self, scopes: &[GrantScope], on: &On, verbs: &[&str], because: &str) {
        for grant in each_grant(scopes, on, verbs, because) {
            self.add(Grant { framework: true, ..grant });
        }
    }

    /// Returns the permissions without those that another one covers.
    ///
    /// The larger one takes over the reasons of the smaller one, but not `framework`: kctl may need only a part of a
    /// permission.
    fn minimal(self) -> Vec<Grant> {
        let all: Vec<Grant> = self.0.into_values().collect();
        let is_needed: Vec<bool> =
            all.iter().map(|one| !all.iter().any(|other| other != one && other.covers(one))).collect();
        let mut minimal: Vec<Grant> =
            all.iter().zip(&is_needed).filter(|(_, is_needed)| **is_needed).map(|(one, _)| one.clone()).collect();
        for (small, _) in all.iter().zip(&is_needed).filter(|(_, is_needed)| !**is_needed) {
            if let Some(large) = minimal.iter_mut().find(|large| large.covers(small)) {
                large.because.extend(small.because.iter().cloned());
            }
        }
        minimal
    }
}

/// Returns the permissions that controllers need on one cluster, sorted, without covered ones.
///
/// `cluster` is the name in `on = name`, empty for the default one.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
/// # struct Settings;
/// # impl Controller for Settings {
/// #     type Primary = ConfigMap;
/// #     type Grant = ();
/// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
/// # }
/// use kctl_runtime::manifest::grants;
///
/// let needed: Vec<String> = grants(&[Settings::spec()], "").iter().map(ToString::to_string).collect();
/// assert!(needed.contains(&"watch configmaps".to_owned()));
/// assert!(needed.contains(&"create events.events.k8s.io".to_owned()));
/// ```
pub fn grants(specs: &[ControllerSpec], cluster: &str) -> Vec<Grant> {
    collect(specs, cluster).minimal()
}

/// Returns the same with covered ones, which remain when the larger one is removed.
pub fn all_grants(specs: &[ControllerSpec], cluster: &str) -> Vec<Grant> {
    collect(specs, cluster).0.into_values().collect()
}

fn collect(specs: &[ControllerSpec], cluster: &str) -> Grants {
    let scopes = Scopes::of(specs);
    let mut grants = Grants::default();
    for spec in specs {
        of_controller(spec, cluster, &scopes, &mut grants);
    }
    grants
}

/// Returns the scopes of a permission: each namespace of the controller, or everywhere.
fn grant_scopes(spec: &ControllerSpec, namespaced: bool) -> Vec<GrantScope> {
    if spec.namespaces.is_empty() || !namespaced {
        return vec![GrantScope::Everywhere];
    }
    spec.namespaces.iter().cloned().map(GrantScope::Namespace).collect()
}

/// Adds the permissions of one controller on one cluster: relations, status, finalizer, events, `rbac(…)`.
fn of_controller(spec: &ControllerSpec, cluster: &str, scopes: &Scopes, grants: &mut Grants) {
    for relation in std::iter::once(&spec.primary).chain(&spec.relations).filter(|r| r.cluster == cluster) {
        of_relation(spec, relation, grants);
    }
    let primary = &spec.primary;
    if primary.cluster == cluster {
        let mut add = |subresource: &str, because: &str| {
            let because = format!("{}: {because}", spec.name);
            let scopes = grant_scopes(spec, primary.namespaced);
            grants.add_declared(&scopes, &on(&primary.kind, subresource), &["patch"], &because);
        };
        if spec.has_status {
            add("/status", "the status of its primary");
        }
        if spec.finalizer.is_some() {
            add("", "its finalizer");
        }
        for relation in spec.relations.iter().filter(|relation| relation.block_owner_deletion) {
            // The admission plugin OwnerReferencesPermissionEnforcement requires `update` on `finalizers` of the owner for
            // `blockOwnerDeletion: true`.
            let because = format!("{}: {}", spec.name, relation.text);
            let finalizers = on(&primary.kind, "/finalizers");
            grants.add_framework(&grant_scopes(spec, primary.namespaced), &finalizers, &["update"], &because);
        }
    }
    for extra in spec.rbac.iter().filter(|extra| extra.cluster == cluster) {
        of_extra(spec, extra, scopes, grants);
    }
    if primary.cluster != cluster {
        return;
    }
    // Events about cluster-scoped objects are in the namespace `default`, where kubectl looks for them.
    let scopes =
        if primary.namespaced { grant_scopes(spec, true) } else { vec![GrantScope::Namespace("default".into())] };
    let events = On::Resource { group: "events.k8s.io".into(), resource: "events".into(), name: String::new() };
    grants.add_framework(&scopes, &events, &["create", "patch"], "kctl: events");
}

/// Adds the permissions of `rbac(…)`. A group `core` is the core group, as controller-gen reads it.
fn of_extra(spec: &ControllerSpec, extra: &ExtraRule, scopes: &Scopes, grants: &mut Grants) {
    let because = BTreeSet::from([format!("{}: {}", spec.name, extra.text)]);
    for mut grant in grants_of_rule(&extra.rule, &GrantScope::Everywhere) {
        if let On::Resource { group, .. } = &mut grant.on
            && group == "core"
        {
            group.clear();
        }
        let is_in_namespaces = !extra.everywhere && scopes.is_in_namespaces(&grant.on);
        for scope in grant_scopes(spec, is_in_namespaces) {
            grants.add(Grant { scope, because: because.clone(), ..grant.clone() });
        }
    }
}

fn on(kind: &Kind, subresource: &str) -> On {
    On::Resource { group: kind.group.clone(), resource: format!("{}{subresource}", kind.plural), name: String::new() }
}

/// Returns the permissions for each of the verbs on one resource in each of the scopes.
fn each_grant(scopes: &[GrantScope], on: &On, verbs: &[&str], because: &str) -> impl Iterator<Item = Grant> {
    scopes.iter().flat_map(move |scope| {
        verbs.iter().map(move |verb| {
            let because = BTreeSet::from([because.to_owned()]);
            Grant { scope: scope.clone(), on: on.clone(), verb: (*verb).into(), because, framework: false }
        })
    })
}

/// Adds the permissions of one relation.
fn of_relation(spec: &ControllerSpec, relation: &RelationSpec, grants: &mut Grants) {
    let because = match relation.role {
        Role::Primary => format!("{}: its primary", spec.name),
        _ => format!("{}: {}", spec.name, relation.text),
    };
    let mut scopes = grant_scopes(spec, relation.namespaced);
    let whole = on(&relation.kind, "");
    match relation.role {
        Role::Live => grants.add_declared(&scopes, &whole, &["get"], &because),
        Role::LiveCluster => {
            scopes = vec![GrantScope::Everywhere];
            grants.add_declared(&scopes, &whole, &["get"], &because);
        }
        _ => {
            let cached = On::Resource {
                group: relation.kind.group.clone(),
                resource: relation.kind.plural.clone(),
                name: only_name(&relation.fields).into(),
            };
            grants.add_framework(&scopes, &cached, &["list", "watch"], &because);
        }
    }
    let because = match relation.role {
        Role::Primary => format!("{}: primary({})", spec.name, relation.verbs.join(", ")),
        _ => because,
    };
    for verb in &relation.verbs {
        let (subresource, verbs) = verbs_of(verb);
        grants.add_declared(&scopes, &on(&relation.kind, subresource), &verbs, &because);
    }
}

/// Returns the name in a field selector that matches one object, so that the rule can be limited to it.
fn only_name(fields: &str) -> &str {
    let name = fields.split(',').find_map(|term| term.trim().strip_prefix("metadata.name="));
    name.map_or("", |name| name.trim_start_matches('='))
}

/// Returns the subresource and the RBAC verbs for a verb of a declaration.
///
/// ```
/// use kctl_runtime::manifest::verbs_of;
///
/// assert_eq!(verbs_of("apply"), ("", vec!["create", "patch"]));
/// assert_eq!(verbs_of("eviction"), ("/eviction", vec!["create"]));
/// assert_eq!(verbs_of("delete"), ("", vec!["delete"]));
/// ```
pub fn verbs_of(verb: &'static str) -> (&'static str, Vec<&'static str>) {
    match verb {
        "apply" => ("", vec!["create", "patch"]),
        "status" => ("/status", vec!["patch"]),
        "scale" => ("/scale", vec!["patch"]),
        "eviction" => ("/eviction", vec!["create"]),
        "binding" => ("/binding", vec!["create"]),
        "token" => ("/token", vec!["create"]),
        verb => ("", vec![verb]),
    }
}
