//! The built-in resources with their scope and subresources, from the discovery documents of kube-apiserver.
//!
//! `resources.txt` lists them. `kctl-apiserver/data/tables.py` writes it when kctl moves to another version.

use std::{collections::BTreeMap, sync::LazyLock};

pub(super) struct Resource {
    /// `true` if its objects belong to namespaces.
    pub(super) is_namespaced: bool,
    /// All its subresources, also those that declarations can't name.
    pub(super) subresources: Vec<&'static str>,
}

/// The resources by group and plural. Groups that are missing here may belong to CRDs.
static RESOURCES: LazyLock<BTreeMap<&str, BTreeMap<&str, Resource>>> = LazyLock::new(|| {
    let mut groups = BTreeMap::<_, BTreeMap<_, _>>::new();
    let lines = include_str!("resources.txt").lines().filter(|line| !line.starts_with('#'));
    for (group, plural, resource) in lines.filter_map(parse) {
        groups.entry(group).or_default().insert(plural, resource);
    }
    groups
});

/// Parses a line `plural.group scope subresource …`. The core group has an empty name.
fn parse(line: &'static str) -> Option<(&'static str, &'static str, Resource)> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    let is_namespaced = words.next()? == "namespaced";
    Some((group, plural, Resource { is_namespaced, subresources: words.collect() }))
}

/// Returns a built-in resource, or `None` if the table lacks it.
pub(super) fn find(group: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.get(group)?.get(plural)
}

/// Returns `true` for a group with built-in resources, such as `apps`. The table has all its stable resources.
///
/// Groups of CRDs are not built in, although the Kubernetes project owns some of them.
///
/// ```
/// use kctl_runtime::manifest::is_built_in_group;
///
/// assert!(is_built_in_group("") && is_built_in_group("networking.k8s.io"));
/// assert!(!is_built_in_group("gateway.networking.k8s.io") && !is_built_in_group("example.com"));
/// ```
pub fn is_built_in_group(group: &str) -> bool {
    RESOURCES.contains_key(group)
}

/// Returns `true` if the group is in the table, and all its resources are namespaced.
pub(super) fn is_namespaced_group(group: &str) -> bool {
    RESOURCES.get(group).is_some_and(|resources| resources.values().all(|resource| resource.is_namespaced))
}
