//! Encodes `OpenAPI` v3 as protobuf (`openapi.v3.Document` of gnostic), which kubectl requests first.
//!
//! Field numbers come from `openapiv3/OpenAPIv3.proto` of gnostic.

use super::{
    EXTERNAL_DOCS, REFERENCE,
    message::{
        ANY,
        FieldForm::{
            Count, Each, Extensions, Flag, Named, Number, One, Text, Texts, UnionFlag, UnionNumber, UnionText, Where,
        },
        Layout,
    },
};

/// Encodes an `OpenAPI` v3 document.
///
/// The input is the JSON of `openapi::v3`.
pub(crate) fn document(document: &serde_json::Value) -> Vec<u8> {
    DOCUMENT.encode(document)
}

static DOCUMENT: Layout = Layout(&[
    (1, "openapi", Text),
    (2, "info", One(&INFO)),
    (4, "paths", Named(1, &PATH)),
    (5, "components", One(&COMPONENTS)),
]);
static INFO: Layout = Layout(&[(1, "title", Text), (6, "version", Text)]);
static COMPONENTS: Layout =
    Layout(&[(1, "schemas", Named(1, &SCHEMA_OR_REFERENCE)), (7, "securitySchemes", Named(1, &SECURITY_OR_REFERENCE))]);
static SECURITY_OR_REFERENCE: Layout = Layout(&[(1, "", One(&SECURITY))]);
static SECURITY: Layout = Layout(&[(1, "type", Text), (2, "description", Text), (3, "name", Text), (4, "in", Text)]);

static PATH: Layout = Layout(&[
    (4, "get", One(&OPERATION)),
    (5, "put", One(&OPERATION)),
    (6, "post", One(&OPERATION)),
    (7, "delete", One(&OPERATION)),
    (8, "options", One(&OPERATION)),
    (9, "head", One(&OPERATION)),
    (10, "patch", One(&OPERATION)),
    (13, "parameters", Each(&PARAMETER_OR_REFERENCE)),
    (14, "", Extensions),
]);
static OPERATION: Layout = Layout(&[
    (1, "tags", Texts),
    (3, "description", Text),
    (5, "operationId", Text),
    (6, "parameters", Each(&PARAMETER_OR_REFERENCE)),
    (7, "requestBody", One(&BODY_OR_REFERENCE)),
    (8, "responses", Named(2, &RESPONSE_OR_REFERENCE)),
    (13, "", Extensions),
]);
static BODY_OR_REFERENCE: Layout = Layout(&[(1, "", One(&BODY))]);
static BODY: Layout = Layout(&[(2, "content", Named(1, &MEDIA_TYPE)), (3, "required", Flag)]);
static RESPONSE_OR_REFERENCE: Layout = Layout(&[(1, "", One(&RESPONSE))]);
static RESPONSE: Layout = Layout(&[(1, "description", Text), (3, "content", Named(1, &MEDIA_TYPE))]);
static MEDIA_TYPE: Layout = Layout(&[(1, "schema", One(&SCHEMA_OR_REFERENCE))]);
static PARAMETER_OR_REFERENCE: Layout = Layout(&[(1, "", One(&PARAMETER))]);
static PARAMETER: Layout = Layout(&[
    (1, "name", Text),
    (2, "in", Text),
    (3, "description", Text),
    (4, "required", Flag),
    (10, "schema", One(&SCHEMA_OR_REFERENCE)),
]);

/// A schema, or a reference without its siblings.
static SCHEMA_OR_REFERENCE: Layout = Layout(&[
    (1, "", Where(|value| value.get("$ref").is_none(), &SCHEMA)),
    (2, "", Where(|value| value.get("$ref").is_some(), &REFERENCE)),
]);
static SCHEMA: Layout = Layout(&[
    (1, "nullable", Flag),
    (6, "externalDocs", One(&EXTERNAL_DOCS)),
    (7, "example", One(&ANY)),
    (9, "title", Text),
    (10, "multipleOf", Number),
    (11, "maximum", Number),
    (12, "exclusiveMaximum", Flag),
    (13, "minimum", Number),
    (14, "exclusiveMinimum", Flag),
    (15, "maxLength", Count),
    (16, "minLength", Count),
    (17, "pattern", Text),
    (18, "maxItems", Count),
    (19, "minItems", Count),
    (20, "uniqueItems", Flag),
    (21, "maxProperties", Count),
    (22, "minProperties", Count),
    (23, "required", Texts),
    (24, "enum", Each(&ANY)),
    (25, "type", Text),
    (26, "allOf", Each(&SCHEMA_OR_REFERENCE)),
    (27, "oneOf", Each(&SCHEMA_OR_REFERENCE)),
    (28, "anyOf", Each(&SCHEMA_OR_REFERENCE)),
    (29, "not", One(&SCHEMA)),
    (30, "items", One(&ITEMS)),
    (31, "properties", Named(1, &SCHEMA_OR_REFERENCE)),
    (32, "additionalProperties", One(&ADDITIONAL_PROPERTIES)),
    (33, "default", One(&DEFAULT)),
    (34, "description", Text),
    (35, "format", Text),
    (36, "", Extensions),
]);
static ITEMS: Layout = Layout(&[(1, "", One(&SCHEMA_OR_REFERENCE))]);
static ADDITIONAL_PROPERTIES: Layout =
    Layout(&[(1, "", Where(|value| !value.is_boolean(), &SCHEMA_OR_REFERENCE)), (2, "", UnionFlag)]);
/// The message has only numbers, booleans and strings; of other values only the presence is encoded.
static DEFAULT: Layout = Layout(&[(1, "", UnionNumber), (2, "", UnionFlag), (3, "", UnionText)]);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn union_members_are_encoded_even_if_zero() {
        for (value, expected) in [
            (json!({ "$ref": "x" }), vec![0x12, 3, 0x0a, 1, b'x']),
            (json!({}), vec![0x0a, 0]),
            (json!({ "default": {} }), vec![0x0a, 3, 0x8a, 2, 0]),
            (json!({ "default": false }), vec![0x0a, 5, 0x8a, 2, 2, 0x10, 0]),
            (json!({ "default": "" }), vec![0x0a, 5, 0x8a, 2, 2, 0x1a, 0]),
            (json!({ "default": 0 }), vec![0x0a, 12, 0x8a, 2, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0]),
            (json!({ "additionalProperties": false }), vec![0x0a, 5, 0x82, 2, 2, 0x10, 0]),
            (json!({ "items": { "$ref": "x" } }), vec![0x0a, 10, 0xf2, 1, 7, 0x0a, 5, 0x12, 3, 0x0a, 1, b'x']),
        ] {
            assert_eq!(SCHEMA_OR_REFERENCE.encode(&value), expected, "{value}");
        }
    }
}
