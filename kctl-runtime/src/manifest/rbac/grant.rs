//! What a declaration needs, in its smallest parts: one verb on one resource in one place.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::{
    object::Kind,
    spec::{ControllerSpec, RelationSpec, Role},
};

/// Stands for every group, resource or verb in a rule.
const ALL: &str = "*";

/// Where something is allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In all namespaces, and on what is in none.
    Everywhere,
    /// In one namespace.
    Namespace(String),
}

/// What something is allowed on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// Objects.
    Resource {
        /// API group; empty text is the core.
        group: String,
        /// Plural, with the subresource as in `pods/eviction`.
        resource: String,
        /// The name of one object; empty is any.
        name: String,
    },
    /// A path that is not about objects, such as `/metrics`.
    Url(String),
}

/// One verb on one resource in one place: the smallest thing that a role can lack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// Where.
    pub place: Place,
    /// On what.
    pub on: On,
    /// The verb, as in RBAC.
    pub verb: String,
    /// The declarations that it comes from, as the user wrote them.
    pub because: BTreeSet<String>,
    /// Whether kctl itself needs it for every declaration of that kind: list and watch of a cache, events.
    pub framework: bool,
}

impl Grant {
    /// Whether whoever has this one may do what the other one says.
    pub fn covers(&self, other: &Self) -> bool {
        let place = self.place == Place::Everywhere || self.place == other.place;
        let on = match (&self.on, &other.on) {
            (On::Url(own), On::Url(wanted)) => match own.strip_suffix('*') {
                Some(start) => wanted.starts_with(start),
                None => own == wanted,
            },
            (On::Resource { group, resource, name }, On::Resource { group: g, resource: r, name: n }) => {
                let subresource =
                    resource.strip_prefix("*/").is_some_and(|sub| r.split_once('/').is_some_and(|(_, of)| of == sub));
                (group == ALL || group == g)
                    && (resource == ALL || resource == r || subresource)
                    && (name.is_empty() || name == n)
            }
            _ => false,
        };
        place && on && (self.verb == ALL || self.verb == other.verb)
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
        match &self.place {
            Place::Everywhere => Ok(()),
            Place::Namespace(namespace) => write!(f, " in namespace {namespace}"),
        }
    }
}

/// The smallest parts of a rule.
pub fn grants_of_rule(rule: &PolicyRule, place: &Place) -> Vec<Grant> {
    let grant = |on: On, verb: &String| {
        let because = BTreeSet::new();
        Grant { place: place.clone(), on, verb: verb.clone(), because, framework: false }
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

/// Kinds without a namespace, of which rules that are written by hand may speak.
const OF_THE_CLUSTER: [(&str, &str); 15] = [
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("admissionregistration.k8s.io", ALL),
    ("apiextensions.k8s.io", ALL),
    ("apiregistration.k8s.io", ALL),
    ("authentication.k8s.io", ALL),
    ("certificates.k8s.io", ALL),
    ("flowcontrol.apiserver.k8s.io", ALL),
    ("networking.k8s.io", "ingressclasses"),
    ("node.k8s.io", ALL),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("scheduling.k8s.io", ALL),
    ("storage.k8s.io", "storageclasses"),
];

fn is_of_the_cluster(on: &On) -> bool {
    let On::Resource { group, resource, .. } = on else { return true };
    let plural = resource.split('/').next().unwrap_or_default();
    OF_THE_CLUSTER.iter().any(|(g, r)| g == group && (*r == ALL || *r == plural))
}

/// Collects what the declarations need, each part once.
#[derive(Default)]
struct Grants(BTreeMap<(Place, On, String), Grant>);

impl Grants {
    fn add(&mut self, grant: Grant) {
        let key = (grant.place.clone(), grant.on.clone(), grant.verb.clone());
        let known = self.0.entry(key).or_insert_with(|| grant.clone());
        known.because.extend(grant.because);
        known.framework |= grant.framework;
    }

    /// What is left when nothing is said twice. Whatever says more takes over the reasons of what says less.
    fn minimal(self) -> Vec<Grant> {
        let all: Vec<Grant> = self.0.into_values().collect();
        let kept: Vec<bool> =
            all.iter().map(|one| !all.iter().any(|other| other != one && other.covers(one))).collect();
        let mut minimal: Vec<Grant> =
            all.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(one, _)| one.clone()).collect();
        for (small, _) in all.iter().zip(&kept).filter(|(_, kept)| !**kept) {
            if let Some(large) = minimal.iter_mut().find(|large| large.covers(small)) {
                large.because.extend(small.because.iter().cloned());
                large.framework |= small.framework;
            }
        }
        minimal
    }
}

/// What controllers need on one cluster, in its smallest parts: sorted, none of them said twice. The name of the cluster that
/// the program is started against is empty.
pub fn grants(specs: &[ControllerSpec], cluster: &str) -> Vec<Grant> {
    let mut grants = Grants::default();
    for spec in specs {
        of_controller(spec, cluster, &mut grants);
    }
    grants.minimal()
}

fn places(spec: &ControllerSpec, namespaced: bool) -> Vec<Place> {
    if spec.namespaces.is_empty() || !namespaced {
        return vec![Place::Everywhere];
    }
    spec.namespaces.iter().cloned().map(Place::Namespace).collect()
}

fn of_controller(spec: &ControllerSpec, cluster: &str, grants: &mut Grants) {
    for relation in std::iter::once(&spec.primary).chain(&spec.relations).filter(|r| r.cluster == cluster) {
        of_relation(spec, relation, grants);
    }
    let primary = &spec.primary;
    if primary.cluster == cluster {
        let mut add = |subresource: &str, because: &str| {
            let because = format!("{}: {because}", spec.name);
            needs(
                grants,
                &places(spec, primary.namespaced),
                &on(&primary.kind, subresource),
                &["patch"],
                &because,
                false,
            );
        };
        if spec.has_status {
            add("/status", "the status of its primary");
        }
        if spec.finalizer.is_some() {
            add("", "its finalizer");
        }
        for relation in spec.relations.iter().filter(|relation| relation.block_owner_deletion) {
            // Whom the admission plugin OwnerReferencesPermissionEnforcement allows to block a deletion.
            let because = format!("{}: {}", spec.name, relation.text);
            let finalizers = on(&primary.kind, "/finalizers");
            needs(grants, &places(spec, primary.namespaced), &finalizers, &["update"], &because, true);
        }
    }
    if !cluster.is_empty() {
        return;
    }
    let because = BTreeSet::from([format!("{}: rbac(…)", spec.name)]);
    for extra in &spec.rbac {
        for grant in grants_of_rule(extra, &Place::Everywhere) {
            for place in places(spec, !is_of_the_cluster(&grant.on)) {
                grants.add(Grant { place, because: because.clone(), ..grant.clone() });
            }
        }
    }
    // Events about what is in no namespace are in `default`, as kubectl expects.
    let places = if primary.namespaced { places(spec, true) } else { vec![Place::Namespace("default".into())] };
    let events = On::Resource { group: "events.k8s.io".into(), resource: "events".into(), name: String::new() };
    needs(grants, &places, &events, &["create", "patch"], "kctl: events", true);
}

fn on(kind: &Kind, subresource: &str) -> On {
    On::Resource { group: kind.group.clone(), resource: format!("{}{subresource}", kind.plural), name: String::new() }
}

fn needs(grants: &mut Grants, places: &[Place], on: &On, verbs: &[&str], because: &str, framework: bool) {
    for place in places {
        for verb in verbs {
            let because = BTreeSet::from([because.to_owned()]);
            grants.add(Grant { place: place.clone(), on: on.clone(), verb: (*verb).into(), because, framework });
        }
    }
}

/// What one relation needs.
fn of_relation(spec: &ControllerSpec, relation: &RelationSpec, grants: &mut Grants) {
    let because = match relation.role {
        Role::Primary => format!("{}: its primary", spec.name),
        _ => format!("{}: {}", spec.name, relation.text),
    };
    let mut places = places(spec, relation.namespaced);
    let mut add =
        |places: &[Place], on: &On, verbs: &[&str], framework| needs(grants, places, on, verbs, &because, framework);
    let whole = on(&relation.kind, "");
    match relation.role {
        Role::Live => add(&places, &whole, &["get"], false),
        Role::LiveCluster => {
            places = vec![Place::Everywhere];
            add(&places, &whole, &["get"], false);
        }
        _ => {
            let cached = On::Resource {
                group: relation.kind.group.clone(),
                resource: relation.kind.plural.clone(),
                name: only_name(&relation.fields).into(),
            };
            add(&places, &cached, &["list", "watch"], true);
        }
    }
    for verb in &relation.verbs {
        let (subresource, verbs) = verbs_of(verb);
        add(&places, &on(&relation.kind, subresource), &verbs, false);
    }
}

/// The name in a field selector that leaves only one object: a rule can say it.
fn only_name(fields: &str) -> &str {
    let name = fields.split(',').find_map(|term| term.trim().strip_prefix("metadata.name="));
    name.map_or("", |name| name.trim_start_matches('='))
}

/// What a verb of a declaration is in RBAC: a subresource and its verbs.
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
