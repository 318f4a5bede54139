//! The subresources of built-in kinds, as kube-apiserver lists them in its discovery documents.
//!
//! A permission on a subresource that a kind lacks grants nothing, and requests to it get 404.

use super::{permission::verbs_of, resources};
use crate::{
    object::Kind,
    spec::{ControllerSpec, RelationSpec},
};

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
    let can_be_named = |name: &&'static str| verbs_of(name).0.strip_prefix('/') == Some(*name);
    let has: Vec<_> = subresources(group, plural).iter().copied().filter(can_be_named).collect();
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
fn knows_subresources(group: &str, version: &str) -> bool {
    resources::is_built_in_group(group) && !version.contains("alpha") && !version.contains("beta")
}

/// Returns the known subresources of a built-in kind, none for other kinds.
fn subresources(group: &str, plural: &str) -> &'static [&'static str] {
    resources::find(group, plural).map_or(&[], |resource| resource.subresources.as_slice())
}
