//! CRDs of the kinds that a chain of interpreters watches, for an API server without Karmada.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kctl_runtime::manifest::KindSpec;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::{CONFIGURATION, CUSTOMIZATION, GROUP, KindNames};

type MakeDefinition = fn() -> CustomResourceDefinition;

/// Returns both kinds. Karmada brings its own CRDs; a control plane without it uses these.
pub(crate) fn kinds() -> [KindSpec; 2] {
    let location = "App::interpreter_chain";
    let kinds: [(&str, MakeDefinition); 2] =
        [(CUSTOMIZATION.kind, customizations), (CONFIGURATION.kind, configurations)];
    kinds.map(|(kind, crd)| {
        let kind = GroupVersionKind::gvk(GROUP, "v1alpha1", kind);
        KindSpec::new(location, kind, crd)
    })
}

fn customizations() -> CustomResourceDefinition {
    let script = || object(&json!({ "luaScript": text() }), &["luaScript"]);
    let scripts = kctl_interpreter::lua::SCRIPT_FUNCTIONS.map(|operation| (operation.field.to_owned(), script()));
    let scripts: serde_json::Map<String, Value> = scripts.into_iter().collect();
    let target = object(&json!({ "apiVersion": text(), "kind": text() }), &["apiVersion", "kind"]);
    let customizations = object(&Value::Object(scripts), &[]);
    let spec = object(&json!({ "target": target, "customizations": customizations }), &["target", "customizations"]);
    definition(CUSTOMIZATION, &["ric"], &json!({ "spec": spec }), "spec")
}

fn configurations() -> CustomResourceDefinition {
    let texts = || json!({ "type": "array", "items": text() });
    let number = || json!({ "type": "integer", "format": "int32" });
    let service = json!({ "namespace": text(), "name": text(), "path": text(), "port": number() });
    let service = object(&service, &["namespace", "name"]);
    let authority = json!({ "type": "string", "format": "byte" });
    let client = object(&json!({ "url": text(), "service": service, "caBundle": authority }), &[]);
    let rule = json!({ "operations": texts(), "apiGroups": texts(), "apiVersions": texts(), "kinds": texts() });
    let rule = object(&rule, &["operations", "apiGroups", "apiVersions", "kinds"]);
    let webhook = json!({
        "name": text(), "clientConfig": client, "rules": { "type": "array", "items": rule },
        "timeoutSeconds": number(), "interpreterContextVersions": texts(),
    });
    let webhook = object(&webhook, &["name", "clientConfig", "interpreterContextVersions"]);
    let webhooks = json!({ "type": "array", "items": webhook });
    definition(CONFIGURATION, &[], &json!({ "webhooks": webhooks }), "webhooks")
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn object(properties: &Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn definition(names: KindNames, short: &[&str], properties: &Value, required: &str) -> CustomResourceDefinition {
    let KindNames { kind, plural } = names;
    let mut schema = object(properties, &[required]);
    for field in ["apiVersion", "kind"] {
        schema["properties"][field] = text();
    }
    schema["properties"]["metadata"] = json!({ "type": "object" });
    let singular = kind.to_ascii_lowercase();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular, "shortNames": short },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    });
    serde_json::from_value(definition).unwrap_or_else(|error| unreachable!("the JSON fits the type: {error}"))
}
