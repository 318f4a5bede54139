//! The definitions of the kinds that a chain of interpreters watches, for an API server without Karmada.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kctl_runtime::reconcile::Result;
use serde_json::{Value, json};

use super::{CONFIGURATION, CUSTOMIZATION, GROUP};

/// The definitions of the two kinds. Karmada brings its own; an API server without it has them from here.
///
/// # Errors
/// None: the objects are definitions.
pub(crate) fn definitions() -> Result<Vec<CustomResourceDefinition>> {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    let object = |properties: Value, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required });
    let script = || object(json!({ "luaScript": { "type": "string" } }), &["luaScript"]);
    let scripts = kctl_interpreter::lua::OPERATIONS.map(|operation| (operation.field.to_owned(), script()));
    let scripts: serde_json::Map<String, Value> = scripts.into_iter().collect();
    let target = object(json!({ "apiVersion": text(), "kind": text() }), &["apiVersion", "kind"]);
    let customizations = object(Value::Object(scripts), &[]);
    let spec = object(json!({ "target": target, "customizations": customizations }), &["target", "customizations"]);
    let service = object(
        json!({ "namespace": text(), "name": text(), "path": text(), "port": { "type": "integer", "format": "int32" } }),
        &["namespace", "name"],
    );
    let client =
        object(json!({ "url": text(), "service": service, "caBundle": { "type": "string", "format": "byte" } }), &[]);
    let rule = object(
        json!({ "operations": texts(), "apiGroups": texts(), "apiVersions": texts(), "kinds": texts() }),
        &["operations", "apiGroups", "apiVersions", "kinds"],
    );
    let webhook = object(
        json!({
            "name": text(), "clientConfig": client, "rules": { "type": "array", "items": rule },
            "timeoutSeconds": { "type": "integer", "format": "int32" }, "interpreterContextVersions": texts(),
        }),
        &["name", "clientConfig", "interpreterContextVersions"],
    );
    let webhooks = json!({ "type": "array", "items": webhook });
    let customization = definition(CUSTOMIZATION, &["ric"], &json!({ "spec": spec }), &["spec"]);
    let configuration = definition(CONFIGURATION, &[], &json!({ "webhooks": webhooks }), &["webhooks"]);
    Ok(vec![serde_json::from_value(customization)?, serde_json::from_value(configuration)?])
}

fn definition((kind, plural): (&str, &str), short: &[&str], properties: &Value, required: &[&str]) -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": properties, "required": required } });
    let singular = kind.to_ascii_lowercase();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular, "shortNames": short },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "schema": schema }],
        },
    })
}
