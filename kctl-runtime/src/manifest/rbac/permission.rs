//! The permissions that declarations need, one verb on one resource in one scope at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::scope::Scopes;
use crate::{
    object::Kind,
    spec::{ControllerSpec, ExtraRule, RelationKind, RelationSpec},
};

/// Matches every group, resource or verb in a rule.
const ALL: &str = "*";

/// The scope in which a permission is valid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermissionScope {
    /// All namespaces, and cluster-scoped objects: a `ClusterRole`.
    Everywhere,
    /// One namespace: a Role.
    Namespace(String),
}

/// The resource or URL that a permission is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermissionTarget {
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
/// `kctl`'s role test runs a program once without each permission for which `framework` is `false`.
///
/// ```
/// use std::collections::BTreeSet;
/// use kctl_runtime::manifest::{Permission, PermissionTarget, PermissionScope};
///
/// let list = |scope| Permission {
///     scope,
///     target: PermissionTarget::Resource { group: "apps".into(), resource: "deployments".into(), name: String::new() },
///     verb: "list".into(),
///     because: BTreeSet::new(),
///     framework: false,
/// };
/// let (everywhere, shop) = (list(PermissionScope::Everywhere), list(PermissionScope::Namespace("shop".into())));
/// assert!(everywhere.covers(&shop) && !shop.covers(&everywhere));
/// assert_eq!(shop.to_string(), "list deployments.apps in namespace shop");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The scope in which it is valid.
    pub scope: PermissionScope,
    /// The resource or URL.
    pub target: PermissionTarget,
    /// The RBAC verb, such as `list`.
    pub verb: String,
    /// The declarations that need it, as the user wrote them.
    pub because: BTreeSet<String>,
    /// `true` if kctl needs it for each declaration of this form: `list` and `watch` of a cache, events, and `update` of
    /// `…/finalizers` for `block_owner_deletion`.
    pub framework: bool,
}

impl Permission {
    /// Returns `true` if this permission includes the other one.
    ///
    /// Names of subresources, `*` and URLs with a trailing `*` match as in an RBAC authorizer.
    pub fn covers(&self, other: &Self) -> bool {
        let in_scope = self.scope == PermissionScope::Everywhere || self.scope == other.scope;
        let in_target = match (&self.target, &other.target) {
            (PermissionTarget::Url(own), PermissionTarget::Url(requested)) => match own.strip_suffix('*') {
                Some(start) => requested.starts_with(start),
                None => own == requested,
            },
            (
                PermissionTarget::Resource { group, resource, name },
                PermissionTarget::Resource { group: g, resource: r, name: n },
            ) => {
                let subresource = resource
                    .strip_prefix("*/")
                    .is_some_and(|sub| r.split_once('/').is_some_and(|(_, requested)| requested == sub));
                (group == ALL || group == g)
                    && (resource == ALL || resource == r || subresource)
                    && (name.is_empty() || name == n)
            }
            _ => false,
        };
        in_scope && in_target && (self.verb == ALL || self.verb == other.verb)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            PermissionTarget::Url(path) => write!(f, "{} {path}", self.verb)?,
            PermissionTarget::Resource { group, resource, name } => {
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
            PermissionScope::Everywhere => Ok(()),
            PermissionScope::Namespace(namespace) => write!(f, " in namespace {namespace}"),
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
            "it is about objects and about paths, which API servers reject",
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
/// use kctl_runtime::manifest::{PermissionScope, permissions_of_rule};
///
/// let rule = PolicyRule {
///     api_groups: Some(vec!["".into()]),
///     resources: Some(vec!["pods".into(), "secrets".into()]),
///     verbs: vec!["get".into(), "list".into()],
///     ..PolicyRule::default()
/// };
/// assert_eq!(permissions_of_rule(&rule, &PermissionScope::Everywhere).len(), 4);
/// ```
pub fn permissions_of_rule(rule: &PolicyRule, scope: &PermissionScope) -> Vec<Permission> {
    let permission = |target: PermissionTarget, verb: &String| {
        let because = BTreeSet::new();
        Permission { scope: scope.clone(), target, verb: verb.clone(), because, framework: false }
    };
    let mut permissions = Vec::new();
    let any = vec![String::new()];
    let names = rule.resource_names.as_ref().filter(|names| !names.is_empty()).unwrap_or(&any);
    for verb in &rule.verbs {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for name in names {
                    let (group, resource, name) = (group.clone(), resource.clone(), name.clone());
                    permissions.push(permission(PermissionTarget::Resource { group, resource, name }, verb));
                }
            }
        }
        permissions.extend(
            rule.non_resource_urls.iter().flatten().map(|url| permission(PermissionTarget::Url(url.clone()), verb)),
        );
    }
    permissions
}

/// Collects permissions, each once, with the reasons of all that need it.
#[derive(Default)]
struct Permissions(BTreeMap<(PermissionScope, PermissionTarget, String), Permission>);

impl Permissions {
    fn add(&mut self, permission: Permission) {
        let key = (permission.scope.clone(), permission.target.clone(), permission.verb.clone());
        let merged = self.0.entry(key).or_insert_with(|| permission.clone());
        merged.because.extend(permission.because);
        merged.framework |= permission.framework;
    }

    fn add_declared(&mut self, scopes: &[PermissionScope], target: &PermissionTarget, verbs: &[&str], because: &str) {
        each_permission(scopes, target, verbs, because).for_each(|permission| self.add(permission));
    }

    /// Adds the permissions for verbs that kctl needs for each declaration of this form.
    fn add_framework(&mut self, scopes: &[PermissionScope], target: &PermissionTarget, verbs: &[&str], because: &str) {
        for permission in each_permission(scopes, target, verbs, because) {
            self.add(Permission { framework: true, ..permission });
        }
    }

    /// Returns the permissions without the ones that another permission covers.
    ///
    /// The larger one takes over the reasons of the smaller one, but not `framework`: kctl may need only a part of a
    /// permission.
    fn without_covered(self) -> Vec<Permission> {
        let all: Vec<Permission> = self.0.into_values().collect();
        let is_needed: Vec<bool> =
            all.iter().map(|one| !all.iter().any(|other| other != one && other.covers(one))).collect();
        let mut minimal: Vec<Permission> =
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
/// #     type Verbs = ();
/// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
/// # }
/// use kctl_runtime::manifest::permissions;
///
/// let needed: Vec<String> = permissions(&[Settings::spec()], "").iter().map(ToString::to_string).collect();
/// assert!(needed.contains(&"watch configmaps".to_owned()));
/// assert!(needed.contains(&"create events.events.k8s.io".to_owned()));
/// ```
pub fn permissions(specs: &[ControllerSpec], cluster: &str) -> Vec<Permission> {
    collect(specs, cluster).without_covered()
}

/// Returns the permissions of [`permissions`] and those that a larger one covers, which remain when the larger one is
/// removed.
pub fn all_permissions(specs: &[ControllerSpec], cluster: &str) -> Vec<Permission> {
    collect(specs, cluster).0.into_values().collect()
}

fn collect(specs: &[ControllerSpec], cluster: &str) -> Permissions {
    let scopes = Scopes::of(specs);
    let mut permissions = Permissions::default();
    for spec in specs {
        add_controller(spec, cluster, &scopes, &mut permissions);
    }
    permissions
}

/// Returns the scopes of a permission: each namespace of the controller, or everywhere.
fn permission_scopes(spec: &ControllerSpec, namespaced: bool) -> Vec<PermissionScope> {
    if spec.namespaces.is_empty() || !namespaced {
        return vec![PermissionScope::Everywhere];
    }
    spec.namespaces.iter().cloned().map(PermissionScope::Namespace).collect()
}

/// Adds the permissions of one controller on one cluster: relations, status, finalizer, events, `rbac(…)`.
fn add_controller(spec: &ControllerSpec, cluster: &str, scopes: &Scopes, permissions: &mut Permissions) {
    for relation in std::iter::once(&spec.primary).chain(&spec.relations).filter(|r| r.cluster == cluster) {
        add_relation(spec, relation, permissions);
    }
    let primary = &spec.primary;
    if primary.cluster == cluster {
        let mut add = |subresource: &str, because: &str| {
            let because = format!("{}: {because}", spec.name);
            let scopes = permission_scopes(spec, primary.namespaced);
            permissions.add_declared(&scopes, &target(&primary.kind, subresource), &["patch"], &because);
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
            let finalizers = target(&primary.kind, "/finalizers");
            permissions.add_framework(&permission_scopes(spec, primary.namespaced), &finalizers, &["update"], &because);
        }
    }
    for extra in spec.rbac.iter().filter(|extra| extra.cluster == cluster) {
        add_extra_rule(spec, extra, scopes, permissions);
    }
    if primary.cluster != cluster {
        return;
    }
    // Events about cluster-scoped objects are in the namespace `default`, where kubectl looks for them.
    let scopes = if primary.namespaced {
        permission_scopes(spec, true)
    } else {
        vec![PermissionScope::Namespace("default".into())]
    };
    let events =
        PermissionTarget::Resource { group: "events.k8s.io".into(), resource: "events".into(), name: String::new() };
    permissions.add_framework(&scopes, &events, &["create", "patch"], "kctl: events");
}

/// Adds the permissions of `rbac(…)`. A group `core` is the core group, as controller-gen reads it.
fn add_extra_rule(spec: &ControllerSpec, extra: &ExtraRule, scopes: &Scopes, permissions: &mut Permissions) {
    let because = BTreeSet::from([format!("{}: {}", spec.name, extra.text)]);
    for mut permission in permissions_of_rule(&extra.rule, &PermissionScope::Everywhere) {
        if let PermissionTarget::Resource { group, .. } = &mut permission.target
            && group == "core"
        {
            group.clear();
        }
        let is_in_namespaces = !extra.everywhere && scopes.is_in_namespaces(&permission.target);
        for scope in permission_scopes(spec, is_in_namespaces) {
            permissions.add(Permission { scope, because: because.clone(), ..permission.clone() });
        }
    }
}

fn target(kind: &Kind, subresource: &str) -> PermissionTarget {
    PermissionTarget::Resource {
        group: kind.group.clone(),
        resource: format!("{}{subresource}", kind.plural),
        name: String::new(),
    }
}

fn each_permission(
    scopes: &[PermissionScope],
    target: &PermissionTarget,
    verbs: &[&str],
    because: &str,
) -> impl Iterator<Item = Permission> {
    scopes.iter().flat_map(move |scope| {
        verbs.iter().map(move |verb| {
            let because = BTreeSet::from([because.to_owned()]);
            Permission { scope: scope.clone(), target: target.clone(), verb: (*verb).into(), because, framework: false }
        })
    })
}

fn add_relation(spec: &ControllerSpec, relation: &RelationSpec, permissions: &mut Permissions) {
    let because = match relation.declared_as {
        RelationKind::Primary => format!("{}: its primary", spec.name),
        _ => format!("{}: {}", spec.name, relation.text),
    };
    let mut scopes = permission_scopes(spec, relation.namespaced);
    let whole = target(&relation.kind, "");
    match relation.declared_as {
        RelationKind::Live => permissions.add_declared(&scopes, &whole, &["get"], &because),
        RelationKind::LiveCluster => {
            scopes = vec![PermissionScope::Everywhere];
            permissions.add_declared(&scopes, &whole, &["get"], &because);
        }
        _ => {
            let cached = PermissionTarget::Resource {
                group: relation.kind.group.clone(),
                resource: relation.kind.plural.clone(),
                name: only_name(&relation.fields).into(),
            };
            permissions.add_framework(&scopes, &cached, &["list", "watch"], &because);
        }
    }
    let because = match relation.declared_as {
        RelationKind::Primary => format!("{}: primary({})", spec.name, relation.verbs.join(", ")),
        _ => because,
    };
    for verb in &relation.verbs {
        let (subresource, verbs) = verbs_of(verb);
        permissions.add_declared(&scopes, &target(&relation.kind, subresource), &verbs, &because);
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
