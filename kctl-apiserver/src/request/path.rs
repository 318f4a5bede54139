//! Splits the path of a resource into group, version, namespace, resource, name and subresource.

/// A path that has the form of a resource path. The resource need not exist. The parts borrow from the decoded path. A
/// part that the path does not have is empty.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath<'a> {
    /// The API group; empty for the core group.
    pub(crate) group: &'a str,
    /// The version, such as `v1`, which need not be served.
    pub(super) version: &'a str,
    /// The namespace; empty for a Namespace itself, whose name is in `name`.
    pub(crate) namespace: &'a str,
    /// The plural in lower case, as the path has it.
    pub(crate) resource: &'a str,
    /// The name of the object; empty for a collection.
    pub(crate) name: &'a str,
    /// The subresource, such as `status`; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// `true` for the deprecated paths of watches, which start with `watch`.
    pub(crate) watches: bool,
    /// `false` if further segments follow the subresource. A proxy may have any.
    pub(super) has_valid_length: bool,
}

/// Splits the path of a resource: `/api/v1/…` or `/apis/GROUP/VERSION/…`. `None` for any other path. A path below a
/// namespace with `status` or `finalize` is about the Namespace itself.
///
/// | path | resource | namespace | name | subresource |
/// | --- | --- | --- | --- | --- |
/// | `/api/v1/nodes` | `nodes` | | | |
/// | `/api/v1/namespaces/a` | `namespaces` | | `a` | |
/// | `/api/v1/namespaces/a/status` | `namespaces` | | `a` | `status` |
/// | `/api/v1/namespaces/a/pods` | `pods` | `a` | | |
/// | `/apis/apps/v1/namespaces/a/deployments/b/scale` | `deployments` | `a` | `b` | `scale` |
/// | `/api/v1/watch/pods` | `pods` | | | |
///
/// A path that ends after the version is discovery, and not the path of a resource. A trailing slash does not count.
pub(crate) fn parse_path(path: &str) -> Option<ResourcePath<'_>> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let mut parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let (group, version, skip) = match parts.as_slice() {
        ["api", version, _, ..] => ("", *version, 2),
        ["apis", "", ..] => return None,
        ["apis", group, version, _, ..] => (*group, *version, 3),
        _ => return None,
    };
    parts.drain(..skip);
    let watches = parts.first() == Some(&"watch");
    if watches {
        parts.remove(0);
    }
    let own_subresource = |name: &str| ["status", "finalize"].contains(&name);
    let namespace = match parts.as_slice() {
        ["namespaces", namespace, next, ..] if !own_subresource(next) => {
            let namespace = *namespace;
            parts.drain(..2);
            namespace
        }
        _ => "",
    };
    let segment = |index: usize| parts.get(index).copied().unwrap_or_default();
    let (resource, name, subresource) = (segment(0), segment(1), segment(2));
    let has_valid_length = parts.len() <= 3 || subresource == "proxy";
    Some(ResourcePath { group, version, namespace, resource, name, subresource, watches, has_valid_length })
}

/// Returns the path after `/proxy`, which the proxied endpoint gets; empty for other requests.
pub(super) fn path_behind(path: &str, resource_path: &ResourcePath<'_>) -> String {
    if resource_path.subresource != "proxy" {
        return String::new();
    }
    let proxy = format!("/{}/{}/proxy", resource_path.resource, resource_path.name);
    path.split_once(&proxy).map_or_else(String::new, |(_, behind)| behind.to_owned())
}

/// Returns the reason why a name cannot be a path segment (`IsValidPathSegmentName`); `None` if it can. Upstream also
/// rejects slashes; the path is decoded before it is split here, so none can be left. Upstream:
/// `k8s.io/apimachinery/pkg/api/validation/path`.
pub(super) fn segment_error(name: &str) -> Option<&'static str> {
    (["..", "."].contains(&name) || name.contains('%')).then_some("must not be '.' or '..' or contain '%'")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: [&str; 6]) {
        let [group, version, namespace, resource, name, subresource] = expected;
        let expected = ResourcePath {
            group,
            version,
            namespace,
            resource,
            name,
            subresource,
            watches: false,
            has_valid_length: true,
        };
        assert_eq!(parse_path(path), Some(expected), "{path}");
    }

    #[test]
    fn paths_name_resources() {
        check("/api/v1/pods", ["", "v1", "", "pods", "", ""]);
        check("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]);
        check("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""]);
        check("/api/v1/namespaces/a/status", ["", "v1", "", "namespaces", "a", "status"]);
        check("/api/v1/namespaces/a/pods/b/log", ["", "v1", "a", "pods", "b", "log"]);
        check("/apis/apps/v1/namespaces/a/deployments/b", ["apps", "v1", "a", "deployments", "b", ""]);
        assert_eq!(parse_path("/api/v1"), None);
        assert_eq!(parse_path("//api/v1/pods"), None);
        assert_eq!(parse_path("/apis//v1/pods"), None);
        assert!(!parse_path("/api/v1/namespaces/a/pods/b/log/c").unwrap().has_valid_length);
        assert_eq!(parse_path("/apis/apps/v1"), None);
    }
}
