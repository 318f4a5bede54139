//! Encodes `OpenAPI` v2 as protobuf (`openapi.v2.Document` of gnostic). kubectl reads no other form of version 2, and
//! needs it to validate lists.
//!
//! Field numbers come from `openapiv2/OpenAPIv2.proto` of gnostic. Fields that Kubernetes' documents do not use are
//! left out.

mod message;
mod v3;

use self::message::{
    ANY,
    FieldForm::{Count, Each, Entries, Extensions, Flag, Named, Number, One, Text, Texts, UnionFlag, Where},
    Layout,
};
pub(crate) use self::v3::document as document_v3;

/// Encodes an `OpenAPI` v2 document.
///
/// The input is the JSON of `openapi::v2`.
pub(crate) fn document(document: &serde_json::Value) -> Vec<u8> {
    DOCUMENT.encode(document)
}

static DOCUMENT: Layout = Layout(&[
    (1, "swagger", Text),
    (2, "info", One(&INFO)),
    (8, "paths", Named(2, &PATH)),
    (9, "definitions", Named(1, &SCHEMA)),
    (10, "parameters", Named(1, &PARAMETER)),
    (12, "security", Each(&REQUIREMENT)),
    (13, "securityDefinitions", Named(1, &SECURITY)),
]);
static INFO: Layout = Layout(&[(1, "title", Text), (2, "version", Text)]);
static REQUIREMENT: Layout = Layout(&[(1, "", Entries(&SCOPES))]);
static SCOPES: Layout = Layout(&[(1, "", Texts)]);
static SECURITY: Layout = Layout(&[(2, "", One(&API_KEY))]);
static API_KEY: Layout = Layout(&[(1, "type", Text), (2, "name", Text), (3, "in", Text), (4, "description", Text)]);

static PATH: Layout = Layout(&[
    (2, "get", One(&OPERATION)),
    (3, "put", One(&OPERATION)),
    (4, "post", One(&OPERATION)),
    (5, "delete", One(&OPERATION)),
    (6, "options", One(&OPERATION)),
    (7, "head", One(&OPERATION)),
    (8, "patch", One(&OPERATION)),
    (9, "parameters", Each(&PARAMETER_OR_REFERENCE)),
    (10, "", Extensions),
]);
static OPERATION: Layout = Layout(&[
    (1, "tags", Texts),
    (3, "description", Text),
    (5, "operationId", Text),
    (6, "produces", Texts),
    (7, "consumes", Texts),
    (8, "parameters", Each(&PARAMETER_OR_REFERENCE)),
    (9, "responses", Named(1, &RESPONSE_OR_REFERENCE)),
    (10, "schemes", Texts),
    (13, "", Extensions),
]);
static RESPONSE_OR_REFERENCE: Layout = Layout(&[(1, "", One(&RESPONSE))]);
static RESPONSE: Layout = Layout(&[(1, "description", Text), (2, "schema", One(&SCHEMA_ITEM))]);
static SCHEMA_ITEM: Layout = Layout(&[(1, "", One(&SCHEMA))]);

static PARAMETER_OR_REFERENCE: Layout = Layout(&[
    (1, "", Where(|value| value.get("$ref").is_none(), &PARAMETER)),
    (2, "", Where(|value| value.get("$ref").is_some(), &REFERENCE)),
]);
static REFERENCE: Layout = Layout(&[(1, "$ref", Text)]);
static PARAMETER: Layout = Layout(&[
    (1, "", Where(|value| value["in"] == "body", &BODY)),
    (2, "", Where(|value| value["in"] != "body", &NON_BODY)),
]);
static BODY: Layout = Layout(&[
    (1, "description", Text),
    (2, "name", Text),
    (3, "in", Text),
    (4, "required", Flag),
    (5, "schema", One(&SCHEMA)),
]);
static NON_BODY: Layout = Layout(&[
    (3, "", Where(|value| value["in"] != "path", &IN_QUERY)),
    (4, "", Where(|value| value["in"] == "path", &IN_PATH)),
]);
/// Query parameters have one more field, which shifts the numbers of later ones.
static IN_QUERY: Layout = Layout(&[
    (1, "required", Flag),
    (2, "in", Text),
    (3, "description", Text),
    (4, "name", Text),
    (6, "type", Text),
    (20, "uniqueItems", Flag),
]);
static IN_PATH: Layout = Layout(&[
    (1, "required", Flag),
    (2, "in", Text),
    (3, "description", Text),
    (4, "name", Text),
    (5, "type", Text),
    (19, "uniqueItems", Flag),
]);

static SCHEMA: Layout = Layout(&[
    (1, "$ref", Text),
    (2, "format", Text),
    (3, "title", Text),
    (4, "description", Text),
    (13, "pattern", Text),
    (6, "multipleOf", Number),
    (7, "maximum", Number),
    (9, "minimum", Number),
    (8, "exclusiveMaximum", Flag),
    (10, "exclusiveMinimum", Flag),
    (16, "uniqueItems", Flag),
    (11, "maxLength", Count),
    (12, "minLength", Count),
    (14, "maxItems", Count),
    (15, "minItems", Count),
    (17, "maxProperties", Count),
    (18, "minProperties", Count),
    (19, "required", Texts),
    (20, "enum", Each(&ANY)),
    (21, "additionalProperties", One(&ADDITIONAL_PROPERTIES)),
    (22, "type", One(&TYPE)),
    (23, "items", One(&SCHEMA_ITEM)),
    (25, "properties", Named(1, &SCHEMA)),
    (29, "externalDocs", One(&EXTERNAL_DOCS)),
    (30, "example", One(&ANY)),
    (31, "", Extensions),
]);
static ADDITIONAL_PROPERTIES: Layout =
    Layout(&[(1, "", Where(|value| !value.is_boolean(), &SCHEMA)), (2, "", UnionFlag)]);
static TYPE: Layout = Layout(&[(1, "", Text)]);
/// The message is the same in version 3.
static EXTERNAL_DOCS: Layout = Layout(&[(1, "description", Text), (2, "url", Text)]);
