//! Discovery: which groups, versions and resources there are, in the words of `/api` and `/apis`.

use serde_json::{Value, json};

use super::Registry;

/// `/apis`.
pub(crate) fn groups(registry: &Registry) -> Value {
    let all = registry.groups.keys().filter(|name| !name.is_empty());
    json!({
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": all.filter_map(|name| group_of(registry, name)).collect::<Vec<_>>(),
    })
}

/// `/apis/GROUP`.
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let mut group = group_of(registry, name)?;
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Some(group)
}

fn group_of(registry: &Registry, name: &str) -> Option<Value> {
    let versions = registry.groups.get(name)?;
    let version = |version: &String| json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    Some(json!({
        "name": name,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": version(versions.first()?),
    }))
}

/// `/apis/GROUP/VERSION` and `/api/v1`.
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let here: Vec<_> =
        registry.all().filter(|resource| resource.of.group == group && resource.version == version).collect();
    // Those of definitions come in the order status, scale.
    let by_kind = here.iter().any(|resource| resource.custom.is_some());
    let mut listed: Vec<_> =
        here.iter().flat_map(|resource| std::iter::once(&resource.listed).chain(&resource.subresources)).collect();
    if listed.is_empty() {
        return None;
    }
    let key = |listed: &'_ super::Listed| {
        let whole = listed.name.as_str();
        if by_kind { whole.split('/').next().unwrap_or_default().to_owned() } else { whole.to_owned() }
    };
    listed.sort_by_key(|listed| key(listed));
    let group_version = if group.is_empty() { version.into() } else { format!("{group}/{version}") };
    let mut list = json!({ "kind": "APIResourceList", "groupVersion": group_version, "resources": listed });
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}
