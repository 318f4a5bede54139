//! Which subresources built-in kinds have: a permission on another one is none, and whatever needs it is answered 404.
//!
//! As a kube-apiserver 1.36 tells it in its discovery documents.

use super::grant::verbs_of;
use crate::{
    object::Kind,
    spec::{ControllerSpec, RelationSpec},
};

/// Group, resource, and those subresources that verbs of declarations are about, in stable versions.
const BUILT_IN: [(&str, &str, &[&str]); 25] = [
    ("", "namespaces", &["status"]),
    ("", "nodes", &["status"]),
    ("", "persistentvolumeclaims", &["status"]),
    ("", "persistentvolumes", &["status"]),
    ("", "pods", &["binding", "eviction", "status"]),
    ("", "replicationcontrollers", &["scale", "status"]),
    ("", "resourcequotas", &["status"]),
    ("", "serviceaccounts", &["token"]),
    ("", "services", &["status"]),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", &["status"]),
    ("apiextensions.k8s.io", "customresourcedefinitions", &["status"]),
    ("apiregistration.k8s.io", "apiservices", &["status"]),
    ("apps", "daemonsets", &["status"]),
    ("apps", "deployments", &["scale", "status"]),
    ("apps", "replicasets", &["scale", "status"]),
    ("apps", "statefulsets", &["scale", "status"]),
    ("autoscaling", "horizontalpodautoscalers", &["status"]),
    ("batch", "cronjobs", &["status"]),
    ("batch", "jobs", &["status"]),
    ("certificates.k8s.io", "certificatesigningrequests", &["status"]),
    ("networking.k8s.io", "ingresses", &["status"]),
    ("networking.k8s.io", "servicecidrs", &["status"]),
    ("policy", "poddisruptionbudgets", &["status"]),
    ("resource.k8s.io", "resourceclaims", &["status"]),
    ("storage.k8s.io", "volumeattachments", &["status"]),
];

/// Groups of Kubernetes whose stable kinds are all known here. Others that end alike are those of definitions.
const GROUPS: [&str; 15] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Says which verb of a declaration is about a subresource that its built-in kind has not, and what it has instead.
pub fn subresource_problem(spec: &ControllerSpec) -> Option<(String, String)> {
    std::iter::once(&spec.primary).chain(&spec.relations).find_map(problem)
}

fn problem(relation: &RelationSpec) -> Option<(String, String)> {
    let Kind { group, version, kind, plural } = &relation.kind;
    let wanted = relation.verbs.iter().filter_map(|verb| verbs_of(verb).0.strip_prefix('/'));
    let missing = wanted.into_iter().find(|subresource| lacks_subresource(group, version, plural, subresource))?;
    let has = subresources(group, plural);
    let those = if has.is_empty() { "it has none".to_owned() } else { format!("it has {}", has.join(", ")) };
    let what = format!("`{kind}` has no subresource `{missing}`");
    Some((what, format!("remove `{missing}` from its verbs: {those}")))
}

/// Whether a kind is known not to have a subresource.
pub fn lacks_subresource(group: &str, version: &str, plural: &str, subresource: &str) -> bool {
    knows_subresources(group, version) && !subresources(group, plural).contains(&subresource)
}

/// Whether the subresources of all kinds of a group and version are known: those of Kubernetes that are stable.
pub fn knows_subresources(group: &str, version: &str) -> bool {
    GROUPS.contains(&group) && !version.contains("alpha") && !version.contains("beta")
}

fn subresources(group: &str, plural: &str) -> &'static [&'static str] {
    let known = BUILT_IN.iter().find(|(of, resource, _)| group == *of && plural == *resource);
    known.map_or(&[], |(_, _, subresources)| subresources)
}
