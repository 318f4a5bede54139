//! `/openapi/v2` and `/openapi/v3`: the schemas and operations of all kinds, for `kubectl explain`, client-side
//! validation and client generators.
//!
//! The flow of a document: `resources` lists the paths of each resource, and `parameters` and `operations` describe
//! them. `types` and `custom` have the schemas, `render` writes version 2 or 3, and `protobuf` encodes it.
//!
//! Documents are functions of the registry: equal registries give equal bytes, apart from `Last-Modified`.

mod custom;
mod names;
mod openapi_version;
mod operations;
mod parameters;
mod protobuf;
mod render;
mod resources;
mod types;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};

pub(crate) use self::protobuf::{document as protobuf, document_v3 as protobuf_v3};
use self::{openapi_version::OpenApiVersion, operations::PathItem};
use crate::{
    registry::{Registry, Resource},
    version,
};

/// The package of the types that all groups share, such as `ObjectMeta` and `Status`.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Returns the document of `/openapi/v3`: the URL of the document of each group and version. `tag_of` returns the hash
/// in the URL, which lets clients cache a document until it changes.
///
/// Groups of custom resources have no document of the whole group.
pub(crate) fn index(registry: &Registry, tag_of: impl Fn(&str) -> String) -> Value {
    let mut roots: BTreeSet<String> =
        ["api", "apis", "version", operations::ISSUER, operations::KEYS].map(str::to_owned).into();
    roots.extend(registry.all().map(|resource| root(&resource.id.group, &resource.version)));
    roots.extend(discovery_roots(registry.all().filter(|resource| resource.custom.is_none())));
    let paths = roots.into_iter().map(|root| {
        let url = format!("/openapi/v3/{root}?hash={}", tag_of(&root));
        (root, json!({ "serverRelativeURL": url }))
    });
    json!({ "paths": paths.collect::<Map<_, _>>() })
}

/// Returns the path of a group and version: `apis/apps/v1`.
///
/// `api/v1` for the core group.
pub(crate) fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Returns the paths of the groups of these resources, and of their versions.
pub(crate) fn discovery_roots<'a>(resources: impl Iterator<Item = &'a Arc<Resource>>) -> impl Iterator<Item = String> {
    resources.flat_map(|resource| {
        let group = &resource.id.group;
        let group_path = (!group.is_empty()).then(|| format!("apis/{group}"));
        group_path.into_iter().chain([root(group, &resource.version)])
    })
}

/// Returns `true` if there is a document for a path.
///
/// Also `true` for discovery paths and the documents for tokens.
pub(crate) fn is_described(registry: &Registry, root: &[&str]) -> bool {
    match root {
        ["version" | "api" | "apis"] | [".well-known", "openid-configuration"] | ["openid", "v1", "jwks"] => true,
        ["api", version] => registry.serves("", version),
        ["apis", group] => registry.is_built_in(group),
        ["apis", group, version] => registry.serves(group, version),
        _ => false,
    }
}

/// Returns the `OpenAPI` v3 document of a path: the operations and types of one group and version.
///
/// A group and version of custom resources gets a document in the form of apiextensions-apiserver, without security
/// schemes.
///
/// The caller has checked that the path is described.
pub(crate) fn v3(registry: &Registry, root: &[&str]) -> Value {
    let group_version = match root {
        ["api", version] => Some(("", *version)),
        ["apis", group, version] => Some((*group, *version)),
        _ => None,
    };
    let here: Vec<&Resource> = registry
        .all()
        .map(AsRef::as_ref)
        .filter(|resource| group_version == Some((resource.id.group.as_str(), resource.version.as_str())))
        .collect();
    let is_custom = here.iter().any(|resource| resource.custom.is_some());
    let mut paths: Vec<PathItem> = here.iter().flat_map(|resource| resources::paths(resource)).collect();
    match root {
        ["version"] => paths.push(operations::version()),
        [".well-known" | "openid", ..] => {
            let url_path = format!("/{}/", root.join("/"));
            paths.extend(operations::token_paths().into_iter().filter(|path| path.path == url_path));
        }
        _ if !is_custom => paths.push(operations::discovery(&root.join("/"))),
        _ => {}
    }
    let (paths, schemas) = parts(&here, &paths, OpenApiVersion::Three, group_version.filter(|_| !is_custom));
    let (info, components) = if is_custom {
        (json!({ "title": "Kubernetes CRD Swagger", "version": "v0.1.0" }), json!({ "schemas": schemas }))
    } else {
        let mut components = json!({ "securitySchemes": token() });
        if !schemas.is_empty() {
            components["schemas"] = schemas.into();
        }
        (info(), components)
    };
    json!({ "openapi": "3.0.0", "info": info, "paths": paths, "components": components })
}

/// Returns the document of `/openapi/v2`, with the operations and types of all groups.
///
/// The largest document of the server, since it has all groups.
pub(crate) fn v2(registry: &Registry) -> Value {
    let all: Vec<&Resource> = registry.all().map(AsRef::as_ref).collect();
    let mut paths: Vec<PathItem> = all.iter().flat_map(|resource| resources::paths(resource)).collect();
    let mut roots: BTreeSet<String> = ["api", "apis"].map(str::to_owned).into();
    roots.extend(discovery_roots(registry.all().filter(|resource| resource.custom.is_none())));
    paths.extend(roots.iter().map(|root| operations::discovery(root)));
    paths.push(operations::version());
    paths.extend(operations::token_paths());
    let (paths, definitions) = parts(&all, &paths, OpenApiVersion::Two, None);
    json!({
        "swagger": "2.0",
        "info": info(),
        "paths": paths,
        "definitions": definitions,
        "parameters": parameters::shared_parameters(),
        "securityDefinitions": token(),
        "security": [{ "BearerToken": [] }],
    })
}

/// Returns the `info` object.
fn info() -> Value {
    json!({ "title": "Kubernetes", "version": format!("1.{}", version::minor()) })
}

/// Returns the security scheme: a bearer token in the header `Authorization`.
fn token() -> Value {
    let description = "Bearer Token authentication";
    json!({ "BearerToken": { "type": "apiKey", "name": "authorization", "in": "header", "description": description } })
}

/// Returns the paths in the form of the version, and all types that they reference, directly or through other types.
/// `group_version` is the group and version of a version 3 document.
fn parts(
    resources: &[&Resource],
    paths: &[PathItem],
    version: OpenApiVersion,
    group_version: Option<(&str, &str)>,
) -> (Map<String, Value>, Map<String, Value>) {
    let mut schemas: Map<String, Value> =
        resources.iter().flat_map(|resource| custom::types(resource, version)).collect();
    let paths: Map<String, Value> = paths.iter().map(|path| (path.path.clone(), render::path(path, version))).collect();
    let shared = if version == OpenApiVersion::Two { parameters::shared_parameters() } else { Map::new() };
    let mut left = BTreeSet::new();
    let all = paths.values().chain(schemas.values()).chain(shared.values());
    all.for_each(|node| types::references(node, &mut left));
    while let Some(name) = left.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        let Some(shown) = types::built_in(&name, version, group_version) else { continue };
        types::references(&shown, &mut left);
        schemas.insert(name, shown);
    }
    (paths, schemas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_of_a_document_is_in_it() {
        let document = v3(&crate::kinds::built_in().registry, &["apis", "apps", "v1"]);
        let mut found = BTreeSet::new();
        types::references(&document, &mut found);
        assert!(found.len() > 50);
        for name in found {
            assert!(document["components"]["schemas"][&name].is_object(), "{name}");
        }
    }
}
