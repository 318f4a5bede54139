//! Adds list and map types to built-in types, so that two appliers can share the containers of a Pod template.
//!
//! The schemas of k8s-openapi lack them, and the range of an `IntOrString`. `merging.txt` lists them by type
//! and field; `kctl-apiserver/data/tables.py` writes it from the types of the API server.
//!
//! Without them, every list in a Pod template would be atomic, that is, owned as a whole. A user who adds a sidecar by
//! server-side apply would have to take over the list of containers from the controller. The next apply of the
//! controller would take it back. With `list-type: map` and the key `name`, each of them owns its container.

use std::{collections::HashMap, sync::LazyLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

use super::owner::{find, follow};

const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// List and map types by type and field; `*` is the type itself.
static MARKERS: LazyLock<HashMap<(&str, &str), &str>> = LazyLock::new(|| {
    let lines = include_str!("merging.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(of, rest)| {
            let (field, marker) = rest.split_once(' ')?;
            Some(((of, field), marker))
        })
        .collect()
});

/// Completes a CRD of one version. `root` is the schema with references, which names the types.
pub(super) fn complete(crd: &mut CustomResourceDefinition, root: &Value) {
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|validation| validation.open_api_v3_schema.as_mut()) {
        walk(root, root, schema);
    }
}

/// Walks along the CRD, which ends where types contain themselves.
fn walk(root: &Value, from: &Value, schema: &mut JSONSchemaProps) {
    let (type_name, node) = follow(root, from);
    if type_name == Some(INT_OR_STRING) {
        // The integer of an `IntOrString` has 32 bits. API servers ignore `format` next to
        // `x-kubernetes-int-or-string`, so bounds replace it.
        let (low, high) = (f64::from(i32::MIN), f64::from(i32::MAX));
        if schema.minimum.is_none_or(|bound| bound < low) {
            schema.minimum = Some(low);
            schema.exclusive_minimum = None;
        }
        if schema.maximum.is_none_or(|bound| bound > high) {
            schema.maximum = Some(high);
            schema.exclusive_maximum = None;
        }
    }
    if let Some(marker) = type_name.and_then(|type_name| MARKERS.get(&(type_name, "*"))) {
        apply(marker, schema);
    }
    for (field, below) in schema.properties.iter_mut().flatten() {
        let Some(from) = find(root, node, field) else { continue };
        // The marker of a field comes before the marker of its type, which it overrides.
        if let Some(marker) = type_name.and_then(|type_name| MARKERS.get(&(type_name, field.as_str()))) {
            apply(marker, below);
        }
        walk(root, from, below);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        walk(root, &node["items"], items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        walk(root, &node["additionalProperties"], values);
    }
}

/// Applies a marker, unless the schema has the keyword already: an attribute of the user wins.
fn apply(marker: &str, schema: &mut JSONSchemaProps) {
    let is_list = schema.type_.as_deref() == Some("array");
    let mut words = marker.split(' ');
    let kind = words.next().unwrap_or_default();
    if !is_list {
        schema.x_kubernetes_map_type.get_or_insert_with(|| kind.into());
        return;
    }
    if schema.x_kubernetes_list_type.is_some() {
        return;
    }
    schema.x_kubernetes_list_type = Some(kind.into());
    let mut keys = Vec::new();
    for key in words {
        let (key, default) = key.split_once('=').map_or((key, None), |(key, default)| (key, Some(default)));
        if let (Some(default), Some(JSONSchemaPropsOrArray::Schema(items))) = (default, &mut schema.items)
            && let Some(field) =
                items.properties.iter_mut().flatten().find_map(|(name, field)| (name == key).then_some(field))
        {
            field.default.get_or_insert_with(|| JSON(default.into()));
        }
        keys.push(key.to_owned());
    }
    if kind == "map" {
        schema.x_kubernetes_list_map_keys = Some(keys);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_merge_as_in_the_api_server() {
        let container = json!({ "properties": { "name": {}, "args": {}, "ports": { "items": { "$ref": "#/$defs/io.k8s.api.core.v1.ContainerPort" } } } });
        let root = json!({
            "properties": { "spec": { "$ref": "#/$defs/WebSpec" } },
            "$defs": {
                "WebSpec": { "properties": {
                    "pod": { "anyOf": [{ "$ref": "#/$defs/io.k8s.api.core.v1.PodSpec" }, { "type": "null" }] },
                    "more": { "items": { "$ref": "#/$defs/io.k8s.api.core.v1.Container" } },
                    "by_name": { "additionalProperties": { "$ref": "#/$defs/io.k8s.api.core.v1.SecretKeySelector" } },
                } },
                "io.k8s.api.core.v1.PodSpec": { "properties": { "containers": { "items": { "$ref": "#/$defs/io.k8s.api.core.v1.Container" } }, "nodeSelector": {} } },
                "io.k8s.api.core.v1.Container": container,
                "io.k8s.api.core.v1.ContainerPort": { "properties": { "containerPort": {}, "protocol": {} } },
                "io.k8s.api.core.v1.SecretKeySelector": {},
            },
        });
        let list = |items: Value| json!({ "type": "array", "items": items });
        let texts = list(json!({ "type": "string" }));
        let port = json!({ "type": "object", "properties": { "containerPort": { "type": "integer" }, "protocol": { "type": "string" } } });
        let container = json!({ "type": "object", "properties": { "name": { "type": "string" }, "args": texts, "ports": list(port) } });
        let pod = json!({ "type": "object", "properties": { "containers": list(container.clone()), "nodeSelector": { "type": "object" } } });
        let spec = json!({ "type": "object", "properties": {
            "pod": pod,
            "more": list(container),
            "by_name": { "type": "object", "additionalProperties": { "type": "object" } },
        } });
        let mut schema: JSONSchemaProps =
            serde_json::from_value(json!({ "type": "object", "properties": { "spec": spec } })).unwrap();
        walk(&root, &root, &mut schema);
        let made = json!(schema);
        let merged =
            |path: &str| made.pointer(&format!("/properties/spec/properties/{path}")).cloned().unwrap_or_default();
        let containers = "pod/properties/containers";
        for (path, expected) in [
            (format!("{containers}/x-kubernetes-list-type"), json!("map")),
            (format!("{containers}/x-kubernetes-list-map-keys"), json!(["name"])),
            (format!("{containers}/items/properties/args/x-kubernetes-list-type"), json!("atomic")),
            (
                format!("{containers}/items/properties/ports/x-kubernetes-list-map-keys"),
                json!(["containerPort", "protocol"]),
            ),
            (format!("{containers}/items/properties/ports/items/properties/protocol/default"), json!("TCP")),
            ("pod/properties/nodeSelector/x-kubernetes-map-type".into(), json!("atomic")),
            ("by_name/additionalProperties/x-kubernetes-map-type".into(), json!("atomic")),
            // The list belongs to the user's type, its items are of a built-in type.
            ("more/x-kubernetes-list-type".into(), Value::Null),
            ("more/items/properties/args/x-kubernetes-list-type".into(), json!("atomic")),
        ] {
            assert_eq!(merged(&path), expected, "{path}");
        }
    }

    #[test]
    fn int_or_string_has_bounds_within_32_bits() {
        let root = json!({ "$ref": format!("#/$defs/{INT_OR_STRING}"), "$defs": { INT_OR_STRING: {} } });
        for (bounds, expected) in [
            (json!({}), json!({ "minimum": -2_147_483_648.0, "maximum": 2_147_483_647.0 })),
            (json!({ "minimum": 0.0, "maximum": 9.0 }), json!({ "minimum": 0.0, "maximum": 9.0 })),
            (
                json!({ "minimum": -3e9, "maximum": 3e9, "exclusiveMaximum": true }),
                json!({ "minimum": -2_147_483_648.0, "maximum": 2_147_483_647.0 }),
            ),
        ] {
            let mut schema: JSONSchemaProps = serde_json::from_value(bounds).unwrap();
            walk(&root, &root, &mut schema);
            assert_eq!(json!(schema), expected);
        }
    }

    #[test]
    fn field_map_type_overrides_type_map_type() {
        let volume = "io.k8s.api.core.v1.PersistentVolumeSpec";
        let claim = "io.k8s.api.core.v1.ObjectReference";
        let root = json!({
            "properties": { "volume": { "$ref": format!("#/$defs/{volume}") }, "claim": { "$ref": format!("#/$defs/{claim}") } },
            "$defs": { volume: { "properties": { "claimRef": { "$ref": format!("#/$defs/{claim}") } } }, claim: {} },
        });
        let claim = json!({ "type": "object" });
        let volume = json!({ "type": "object", "properties": { "claimRef": claim } });
        let made = json!({ "type": "object", "properties": { "volume": volume, "claim": claim } });
        let mut schema: JSONSchemaProps = serde_json::from_value(made).unwrap();
        walk(&root, &root, &mut schema);
        let made = json!(schema);
        let map_type = |path: &str| made.pointer(&format!("/properties/{path}/x-kubernetes-map-type")).cloned();
        assert_eq!(map_type("volume/properties/claimRef"), Some(json!("granular")));
        assert_eq!(map_type("claim"), Some(json!("atomic")));
    }
}
