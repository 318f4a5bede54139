//! The types in the scheme of kube-apiserver besides the resources, and its errors for types that cannot be converted.

use crate::schema;

/// Kinds that are registered in every group.
const OF_ALL_GROUPS: [&str; 7] =
    ["CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent"];
/// Kinds of the core group without a path of their own.
const OF_CORE: [&str; 11] = [
    "List",
    "NodeProxyOptions",
    "PodAttachOptions",
    "PodExecOptions",
    "PodLogOptions",
    "PodPortForwardOptions",
    "PodProxyOptions",
    "PodStatusResult",
    "RangeAllocation",
    "SerializedReference",
    "ServiceProxyOptions",
];
const OF_NO_GROUP: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];

/// Returns the error of the scheme for an object that is not of a built-in type and cannot be converted to it.
pub(crate) fn unconverted((kind, api_version): (&str, &str), given_kind: &str, given_api: &str) -> String {
    let Some(package) = package_of(given_kind, given_api) else { return unregistered(given_kind, given_api) };
    let (own_group, _) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let own_group = own_group.split('.').next().filter(|group| !["", "events"].contains(group)).unwrap_or("core");
    format!("converting ({package}.{given_kind}) to ({own_group}.{kind}): unknown conversion")
}

fn unregistered(kind: &str, api_version: &str) -> String {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let of = match version {
        "__internal" => format!("the internal version of group {group:?}"),
        _ => format!("version {api_version:?}"),
    };
    format!("no kind {kind:?} is registered for {of} in scheme \"pkg/runtime/scheme.go:111\"")
}

/// Returns `true` if a kind is registered for all groups (`AddToGroupVersion` of `k8s.io/apimachinery/pkg/apis/meta/v1`).
pub(crate) fn is_beside_groups(kind: &str, api_version: &str) -> bool {
    let shown = ["PartialObjectMetadata", "PartialObjectMetadataList", "Table", "TableOptions"];
    ["v1", "meta.k8s.io/v1"].contains(&api_version)
        && (OF_ALL_GROUPS.contains(&kind) || OF_NO_GROUP.contains(&kind) || shown.contains(&kind))
}

/// Returns the Go package of a kind that the scheme has.
pub(crate) fn package_of<'a>(kind: &str, api_version: &'a str) -> Option<&'a str> {
    let is_of_group = OF_ALL_GROUPS.contains(&kind) && schema::is_version(api_version);
    if OF_NO_GROUP.contains(&kind) || is_of_group || (OF_CORE.contains(&kind) && api_version == "v1") {
        return Some("v1");
    }
    schema::name_of(api_version, kind).map(|_| api_version.rsplit('/').next().unwrap_or_default())
}
