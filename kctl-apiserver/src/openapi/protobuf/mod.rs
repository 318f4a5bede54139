//! Encodes `OpenAPI` v2 as protobuf (`openapi.v2.Document` of gnostic). kubectl reads no other form of version 2, and
//! needs it to validate lists.
//!
//! Field numbers are those of `openapiv2/OpenAPIv2.proto` of gnostic. Fields that Kubernetes'
//! documents do not use are left out.

mod message;
mod three;

use serde_json::Value;

use self::message::{Message, items};
pub(crate) use self::three::document as three;

/// Encodes an `OpenAPI` v2 document.
///
/// The input is the JSON of `openapi::v2`.
pub(crate) fn document(document: &Value) -> Vec<u8> {
    let mut whole = Message::default();
    whole.text(1, &document["swagger"]);
    whole.message(2, |info| {
        info.text(1, &document["info"]["title"]);
        info.text(2, &document["info"]["version"]);
    });
    whole.message(8, |paths| paths.named(2, &document["paths"], path));
    whole.message(9, |definitions| definitions.named(1, &document["definitions"], schema));
    whole.message(10, |parameters| parameters.named(1, &document["parameters"], parameter));
    for requirement in items(&document["security"]) {
        whole.message(12, |security| security.named(1, requirement, |scopes, value| scopes.texts(1, value)));
    }
    whole.message(13, |security| {
        security.named(1, &document["securityDefinitions"], |item, value| {
            item.message(2, |key| {
                for (number, field) in [(1, "type"), (2, "name"), (3, "in"), (4, "description")] {
                    key.text(number, &value[field]);
                }
            });
        });
    });
    whole.into_bytes()
}

/// Encodes a path.
///
/// The numbers of methods are fixed by the message `PathItem`.
fn path(item: &mut Message, value: &Value) {
    let methods = [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")];
    for (number, method) in methods {
        if let Some(value) = value.get(method) {
            item.message(number, |found| operation(found, value));
        }
    }
    parameters(item, 9, &value["parameters"]);
    item.extensions(10, value);
}

/// Encodes an operation.
///
/// The schema of a response is optional.
fn operation(item: &mut Message, value: &Value) {
    item.texts(1, &value["tags"]);
    item.text(3, &value["description"]);
    item.text(5, &value["operationId"]);
    item.texts(6, &value["produces"]);
    item.texts(7, &value["consumes"]);
    parameters(item, 8, &value["parameters"]);
    item.message(9, |responses| {
        responses.named(1, &value["responses"], |code, value| {
            code.message(1, |response| {
                response.text(1, &value["description"]);
                if let Some(nested) = value.get("schema") {
                    response.message(2, |item| item.message(1, |found| schema(found, nested)));
                }
            });
        });
    });
    item.texts(10, &value["schemes"]);
    item.extensions(13, value);
}

/// Encodes parameters. Shared ones are references.
///
/// `number` is the field in the enclosing message.
fn parameters(item: &mut Message, number: u32, value: &Value) {
    for value in items(value) {
        item.message(number, |entry| match value.get("$ref") {
            Some(reference) => entry.message(2, |found| found.text(1, reference)),
            None => entry.message(1, |found| parameter(found, value)),
        });
    }
}

/// Encodes one parameter.
///
/// Body parameters and others have different messages.
fn parameter(item: &mut Message, value: &Value) {
    if value["in"] == "body" {
        item.message(1, |body| {
            body.text(1, &value["description"]);
            body.text(2, &value["name"]);
            body.text(3, &value["in"]);
            body.flag(4, &value["required"]);
            body.message(5, |found| schema(found, &value["schema"]));
        });
        return;
    }
    // Query parameters have one more field, which shifts the numbers of later ones.
    let (number, later) = if value["in"] == "path" { (4, 0) } else { (3, 1) };
    item.message(2, |other| {
        other.message(number, |found| {
            found.flag(1, &value["required"]);
            found.text(2, &value["in"]);
            found.text(3, &value["description"]);
            found.text(4, &value["name"]);
            found.text(5 + later, &value["type"]);
            found.flag(19 + later, &value["uniqueItems"]);
        });
    });
}

/// Encodes a schema.
///
/// A boolean `additionalProperties` and a schema are two members of one message.
fn schema(item: &mut Message, value: &Value) {
    for (number, field) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")] {
        item.text(number, &value[field]);
    }
    for (number, field) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        item.number(number, &value[field]);
    }
    for (number, field) in [(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems")] {
        item.flag(number, &value[field]);
    }
    let counts = [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ];
    for (number, field) in counts {
        item.count(number, &value[field]);
    }
    item.texts(19, &value["required"]);
    items(&value["enum"]).for_each(|value| item.any(20, value));
    match &value["additionalProperties"] {
        Value::Null => {}
        Value::Bool(allowed) => item.message(21, |either| either.varint(2, u64::from(*allowed))),
        nested => item.message(21, |either| either.message(1, |found| schema(found, nested))),
    }
    if value["type"].is_string() {
        item.message(22, |types| types.text(1, &value["type"]));
    }
    if let Some(nested) = value.get("items") {
        item.message(23, |list| list.message(1, |found| schema(found, nested)));
    }
    if value["properties"].is_object() {
        item.message(25, |properties| properties.named(1, &value["properties"], schema));
    }
    if let Some(docs) = value.get("externalDocs") {
        item.message(29, |found| {
            found.text(1, &docs["description"]);
            found.text(2, &docs["url"]);
        });
    }
    if let Some(example) = value.get("example") {
        item.any(30, example);
    }
    item.extensions(31, value);
}
