//! The subresources of built-in kinds, as kube-apiserver 1.37 lists them in its discovery documents.
//!
//! A permission on a subresource that a kind lacks grants nothing, and requests to it get 404.

use super::grant::verbs_of;
use crate::{
    object::Kind,
    spec::{ControllerSpec, RelationSpec},
};

/// Group, resource, and the subresources that declarations can name, in stable versions.
const BUILT_IN: [(&str, &str, &[&str]); 29] = [
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
    ("certificates.k8s.io", "podcertificaterequests", &["status"]),
    ("networking.k8s.io", "ingresses", &["status"]),
    ("networking.k8s.io", "servicecidrs", &["status"]),
    ("policy", "poddisruptionbudgets", &["status"]),
    ("resource.k8s.io", "devicetaintrules", &["status"]),
    ("resource.k8s.io", "resourceclaims", &["status"]),
    ("storage.k8s.io", "csinodes", &["status"]),
    ("storage.k8s.io", "volumeattachments", &["status"]),
    ("storagemigration.k8s.io", "storageversionmigrations", &["status"]),
];

/// Groups whose stable kinds are all listed here. Other groups may belong to CRDs.
const GROUPS: [&str; 16] = [
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
    "storagemigration.k8s.io",
];

/// Returns the verb of a declaration whose subresource the built-in kind lacks, and the subresources that it
/// has.
///
/// The first string is the problem, the second the remedy. Custom resources are not checked, since their CRD
/// may be another program's.
pub fn subresource_problem(spec: &ControllerSpec) -> Option<(String, String)> {
    std::iter::once(&spec.primary).chain(&spec.relations).find_map(problem)
}

fn problem(relation: &RelationSpec) -> Option<(String, String)> {
    let Kind { group, version, kind, plural } = &relation.kind;
    let requested = relation.verbs.iter().filter_map(|verb| verbs_of(verb).0.strip_prefix('/'));
    let missing = requested.into_iter().find(|subresource| lacks_subresource(group, version, plural, subresource))?;
    let has = subresources(group, plural);
    let those = if has.is_empty() { "it has none".to_owned() } else { format!("it has {}", has.join(", ")) };
    let what = format!("`{kind}` has no subresource `{missing}`");
    Some((what, format!("remove `{missing}` from its verbs: {those}")))
}

/// Returns `true` if a kind is known not to have a subresource.
///
/// ```
/// use kctl_runtime::manifest::lacks_subresource;
///
/// assert!(lacks_subresource("", "v1", "configmaps", "status"));
/// assert!(!lacks_subresource("apps", "v1", "deployments", "scale"));
/// assert!(!lacks_subresource("example.com", "v1", "webs", "status")); // not known
/// ```
pub fn lacks_subresource(group: &str, version: &str, plural: &str, subresource: &str) -> bool {
    knows_subresources(group, version) && !subresources(group, plural).contains(&subresource)
}

/// Returns `true` if the subresources of all kinds of a group and version are known.
///
/// That holds for stable versions of Kubernetes' own groups.
pub fn knows_subresources(group: &str, version: &str) -> bool {
    GROUPS.contains(&group) && !version.contains("alpha") && !version.contains("beta")
}

/// Returns the known subresources of a built-in kind, none for other kinds.
fn subresources(group: &str, plural: &str) -> &'static [&'static str] {
    let entry = BUILT_IN.iter().find(|(known_group, resource, _)| group == *known_group && plural == *resource);
    entry.map_or(&[], |(_, _, subresources)| subresources)
}
