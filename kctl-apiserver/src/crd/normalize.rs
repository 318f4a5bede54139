//! Normalizes the schemas of a `CustomResourceDefinition` to the JSON that Go encodes: zero values are omitted, and
//! whole numbers have no decimal point.
//!
//! Upstream: `JSONSchemaProps` of apiextensions.k8s.io/v1, and the conversion of its values to the internal version and
//! back.
//!
//! A client that reads a CRD back gets what Go would have encoded, not what was sent. Without this,
//! each apply of the same file would look like a change.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{
    go::{self, is_zero},
    proto,
};

/// Keywords with `omitempty`. Other keywords are pointers in Go, and keep their zero values, such as `minimum: 0`.
static OMITTED: LazyLock<Vec<&str>> = LazyLock::new(|| {
    proto::omitempty_fields("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
});
/// Fields of a validation rule with `omitempty`. `rule` has none: an empty one is kept, and validation reports it.
static OMITTED_OF_RULES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    proto::omitempty_fields("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ValidationRule")
});

/// Normalizes the schemas of all versions and the conversion webhook.
///
/// Idempotent. A conversion webhook without any field is removed.
pub(super) fn definition(definition: &mut Value) {
    let conversion = definition.pointer_mut("/spec/conversion").and_then(Value::as_object_mut);
    if let Some(conversion) = conversion {
        let is_empty = |webhook: &Value| {
            webhook.is_object() && webhook["clientConfig"].is_null() && is_zero(&webhook["conversionReviewVersions"])
        };
        if conversion.get("webhook").is_some_and(is_empty) {
            conversion.remove("webhook");
        }
    }
    let versions = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            normalize(schema);
        }
    }
}

/// Normalizes a schema and those below it. Values under `default` and `example` only lose a decimal point without a
/// fraction.
fn normalize(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    // Validation reports `dependencies`, even empty ones.
    fields.retain(|key, value| key == "dependencies" || !(OMITTED.contains(&key.as_str()) && is_zero(value)));
    for (key, value) in fields {
        match key.as_str() {
            "default" | "example" | "enum" | "minimum" | "maximum" | "multipleOf" => go::whole_numbers(value),
            "allOf" | "anyOf" | "oneOf" => value.as_array_mut().into_iter().flatten().for_each(normalize),
            "items" if value.is_array() => value.as_array_mut().into_iter().flatten().for_each(normalize),
            "x-kubernetes-validations" => value.as_array_mut().into_iter().flatten().for_each(normalize_rule),
            "not" | "items" | "additionalProperties" | "additionalItems" => normalize(value),
            "properties" | "patternProperties" | "definitions" | "dependencies" => {
                let has_schemas = key != "dependencies";
                for (_, below) in value.as_object_mut().into_iter().flatten() {
                    // Go decodes `null` in a map of schemas to an empty schema.
                    if has_schemas && below.is_null() {
                        *below = json!({});
                    }
                    normalize(below);
                }
            }
            _ => {}
        }
    }
}

/// Removes the empty fields of a validation rule.
fn normalize_rule(rule: &mut Value) {
    if let Some(fields) = rule.as_object_mut() {
        fields.retain(|key, value| !(OMITTED_OF_RULES.contains(&key.as_str()) && is_zero(value)));
    }
}
