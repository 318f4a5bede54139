//! The versions and schemas of a definition as errors show them: as JSON of the internal types of Go, which have no names of their own
//! for JSON. Reads settled JSON ([`super::settle`]), hands on text, and the fields that are set.
//!
//! Upstream: `pkg/apis/apiextensions/{types,types_jsonschema}.go` of apiextensions-apiserver.

use serde_json::Value;

use crate::go;

/// How a field is shown.
#[derive(Clone, Copy)]
enum Shape {
    /// A text that is empty where it is not there.
    Text,
    Flag,
    /// As it is, and null where it is not there.
    Plain,
    Schema,
    Schemas,
    /// Schemas by name.
    Named,
    /// A schema or many.
    SchemaOrMany,
    /// A schema, or whether anything is allowed.
    SchemaOrFlag,
    /// By name, schemas or names of fields.
    Dependencies,
    /// Fields of a structure, or null.
    Parts(&'static [Field]),
    /// The same of each item of a list.
    Each(&'static [Field]),
}

/// The name in Go and that in JSON.
type Field = (&'static str, &'static str, Shape);

const DOCS: &[Field] = &[("Description", "description", Shape::Text), ("URL", "url", Shape::Text)];
const RULE: &[Field] = &[
    ("Rule", "rule", Shape::Text),
    ("Message", "message", Shape::Text),
    ("MessageExpression", "messageExpression", Shape::Text),
    ("Reason", "reason", Shape::Plain),
    ("FieldPath", "fieldPath", Shape::Text),
    ("OptionalOldSelf", "optionalOldSelf", Shape::Plain),
];
const SCHEMA: &[Field] = &[
    ("ID", "id", Shape::Text),
    ("Schema", "$schema", Shape::Text),
    ("Ref", "$ref", Shape::Plain),
    ("Description", "description", Shape::Text),
    ("Type", "type", Shape::Text),
    ("Nullable", "nullable", Shape::Flag),
    ("Format", "format", Shape::Text),
    ("Title", "title", Shape::Text),
    ("Default", "default", Shape::Plain),
    ("Maximum", "maximum", Shape::Plain),
    ("ExclusiveMaximum", "exclusiveMaximum", Shape::Flag),
    ("Minimum", "minimum", Shape::Plain),
    ("ExclusiveMinimum", "exclusiveMinimum", Shape::Flag),
    ("MaxLength", "maxLength", Shape::Plain),
    ("MinLength", "minLength", Shape::Plain),
    ("Pattern", "pattern", Shape::Text),
    ("MaxItems", "maxItems", Shape::Plain),
    ("MinItems", "minItems", Shape::Plain),
    ("UniqueItems", "uniqueItems", Shape::Flag),
    ("MultipleOf", "multipleOf", Shape::Plain),
    ("Enum", "enum", Shape::Plain),
    ("MaxProperties", "maxProperties", Shape::Plain),
    ("MinProperties", "minProperties", Shape::Plain),
    ("Required", "required", Shape::Plain),
    ("Items", "items", Shape::SchemaOrMany),
    ("AllOf", "allOf", Shape::Schemas),
    ("OneOf", "oneOf", Shape::Schemas),
    ("AnyOf", "anyOf", Shape::Schemas),
    ("Not", "not", Shape::Schema),
    ("Properties", "properties", Shape::Named),
    ("AdditionalProperties", "additionalProperties", Shape::SchemaOrFlag),
    ("PatternProperties", "patternProperties", Shape::Named),
    ("Dependencies", "dependencies", Shape::Dependencies),
    ("AdditionalItems", "additionalItems", Shape::SchemaOrFlag),
    ("Definitions", "definitions", Shape::Named),
    ("ExternalDocs", "externalDocs", Shape::Parts(DOCS)),
    ("Example", "example", Shape::Plain),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Shape::Plain),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Shape::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Shape::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Shape::Plain),
    ("XListType", "x-kubernetes-list-type", Shape::Plain),
    ("XMapType", "x-kubernetes-map-type", Shape::Plain),
    ("XValidations", "x-kubernetes-validations", Shape::Each(RULE)),
];
const SCALE: &[Field] = &[
    ("SpecReplicasPath", "specReplicasPath", Shape::Text),
    ("StatusReplicasPath", "statusReplicasPath", Shape::Text),
    ("LabelSelectorPath", "labelSelectorPath", Shape::Plain),
];
const COLUMN: &[Field] = &[
    ("Name", "name", Shape::Text),
    ("Type", "type", Shape::Text),
    ("Format", "format", Shape::Text),
    ("Description", "description", Shape::Text),
    ("Priority", "priority", Shape::Plain),
    ("JSONPath", "jsonPath", Shape::Text),
];
const VERSION: &[Field] = &[
    ("Name", "name", Shape::Text),
    ("Served", "served", Shape::Flag),
    ("Storage", "storage", Shape::Flag),
    ("Deprecated", "deprecated", Shape::Flag),
    ("DeprecationWarning", "deprecationWarning", Shape::Plain),
    ("Schema", "schema", Shape::Parts(&[("OpenAPIV3Schema", "openAPIV3Schema", Shape::Schema)])),
    (
        "Subresources",
        "subresources",
        Shape::Parts(&[("Status", "status", Shape::Plain), ("Scale", "scale", Shape::Parts(SCALE))]),
    ),
    ("AdditionalPrinterColumns", "additionalPrinterColumns", Shape::Each(COLUMN)),
    ("SelectableFields", "selectableFields", Shape::Each(&[("JSONPath", "jsonPath", Shape::Text)])),
];

/// A schema.
pub(super) fn schema(schema: &Value) -> String {
    parts(schema, SCHEMA)
}

/// A version.
pub(super) fn version(version: &Value) -> String {
    parts(version, VERSION)
}

/// The fields of a schema that say something, by their names in Go.
pub(super) fn names_in_schema(schema: &Value) -> impl Iterator<Item = &'static str> {
    SCHEMA.iter().filter(|(_, key, shape)| is_set(&schema[*key], *shape)).map(|(name, ..)| *name)
}

fn is_set(value: &Value, shape: Shape) -> bool {
    match (value, shape) {
        (Value::Null, _) | (Value::Bool(false), Shape::Flag) => false,
        (Value::String(text), Shape::Text) => !text.is_empty(),
        _ => true,
    }
}

fn parts(value: &Value, fields: &[Field]) -> String {
    let shown = fields.iter().map(|(name, key, shape)| {
        let value = &value[*key];
        let text = if *name == "Priority" && value.is_null() { "0".to_owned() } else { shown(value, *shape) };
        format!("\"{name}\":{text}")
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

fn shown(value: &Value, shape: Shape) -> String {
    match (value, shape) {
        (Value::Null, Shape::Text) => "\"\"".to_owned(),
        (Value::Null, Shape::Flag) => "false".to_owned(),
        (Value::Null, _) | (_, Shape::Text | Shape::Flag | Shape::Plain) => go::json(value),
        (_, Shape::Schema) => schema(value),
        (_, Shape::Schemas) => list(value, schema),
        (_, Shape::Named) => by_name(value, schema),
        (Value::Array(_), Shape::SchemaOrMany) => {
            format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", list(value, schema))
        }
        (_, Shape::SchemaOrMany) => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(value)),
        (Value::Bool(allows), Shape::SchemaOrFlag) => format!("{{\"Allows\":{allows},\"Schema\":null}}"),
        (_, Shape::SchemaOrFlag) => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(value)),
        (_, Shape::Dependencies) => by_name(value, |one| match one {
            Value::Array(_) => format!("{{\"Schema\":null,\"Property\":{}}}", go::json(one)),
            _ => format!("{{\"Schema\":{},\"Property\":null}}", schema(one)),
        }),
        (_, Shape::Parts(fields)) => parts(value, fields),
        (_, Shape::Each(fields)) => list(value, |one| parts(one, fields)),
    }
}

fn list(value: &Value, one: impl Fn(&Value) -> String) -> String {
    let all: Vec<String> = value.as_array().into_iter().flatten().map(one).collect();
    format!("[{}]", all.join(","))
}

fn by_name(value: &Value, one: impl Fn(&Value) -> String) -> String {
    let fields = value.as_object().into_iter().flatten();
    let all: Vec<String> =
        fields.map(|(name, value)| format!("{}:{}", go::json(&name.as_str().into()), one(value))).collect();
    format!("{{{}}}", all.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_is_shown_as_its_type_in_go() {
        let shown = version(&json!({
            "name": "v1", "served": true, "subresources": { "status": {} },
            "additionalPrinterColumns": [{ "name": "a", "type": "string", "jsonPath": ".a" }],
        }));
        assert_eq!(
            shown,
            "{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\"DeprecationWarning\":null,\
             \"Schema\":null,\"Subresources\":{\"Status\":{},\"Scale\":null},\"AdditionalPrinterColumns\":[{\"Name\":\"a\",\
             \"Type\":\"string\",\"Format\":\"\",\"Description\":\"\",\"Priority\":0,\"JSONPath\":\".a\"}],\
             \"SelectableFields\":null}"
        );
    }
}
