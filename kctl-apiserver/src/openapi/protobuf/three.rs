//! Encodes `OpenAPI` v3 as protobuf (`openapi.v3.Document` of gnostic), which kubectl requests first.
//!
//! Field numbers are those of `openapiv3/OpenAPIv3.proto` of gnostic.

use serde_json::Value;

use super::message::{Message, items};

/// Encodes an `OpenAPI` v3 document.
///
/// The input is the JSON of `openapi::v3`.
pub(crate) fn document(document: &Value) -> Vec<u8> {
    let mut whole = Message::default();
    whole.text(1, &document["openapi"]);
    whole.message(2, |info| {
        info.text(1, &document["info"]["title"]);
        info.text(6, &document["info"]["version"]);
    });
    whole.message(4, |paths| paths.named(1, &document["paths"], path));
    whole.message(5, |components| {
        if document["components"]["schemas"].is_object() {
            components.message(1, |all| all.named(1, &document["components"]["schemas"], schema_or_reference));
        }
        if document["components"]["securitySchemes"].is_object() {
            components.message(7, |all| all.named(1, &document["components"]["securitySchemes"], security));
        }
    });
    whole.into_bytes()
}

/// Encodes the security scheme.
///
/// Documents of custom resources have no such scheme.
fn security(item: &mut Message, value: &Value) {
    item.message(1, |scheme| {
        for (number, field) in [(1, "type"), (2, "description"), (3, "name"), (4, "in")] {
            scheme.text(number, &value[field]);
        }
    });
}

/// Encodes a path.
///
/// The numbers differ from those of version 2.
fn path(item: &mut Message, value: &Value) {
    let methods = [(4, "get"), (5, "put"), (6, "post"), (7, "delete"), (8, "options"), (9, "head"), (10, "patch")];
    for (number, method) in methods {
        if let Some(value) = value.get(method) {
            item.message(number, |found| operation(found, value));
        }
    }
    parameters(item, 13, &value["parameters"]);
    item.extensions(14, value);
}

/// Encodes an operation.
///
/// Bodies and responses list their media types.
fn operation(item: &mut Message, value: &Value) {
    item.texts(1, &value["tags"]);
    item.text(3, &value["description"]);
    item.text(5, &value["operationId"]);
    parameters(item, 6, &value["parameters"]);
    if let Some(body) = value.get("requestBody") {
        item.message(7, |either| {
            either.message(1, |found| {
                found.message(2, |types| types.named(1, &body["content"], media));
                found.flag(3, &body["required"]);
            });
        });
    }
    item.message(8, |responses| {
        responses.named(2, &value["responses"], |either, value| {
            either.message(1, |response| {
                response.text(1, &value["description"]);
                if value["content"].is_object() {
                    response.message(3, |types| types.named(1, &value["content"], media));
                }
            });
        });
    });
    item.extensions(13, value);
}

/// Encodes a media type.
///
/// A media type without a schema is an empty message.
fn media(item: &mut Message, value: &Value) {
    if let Some(nested) = value.get("schema") {
        item.message(1, |found| schema_or_reference(found, nested));
    }
}

/// Encodes parameters.
///
/// Version 3 writes out each parameter.
fn parameters(item: &mut Message, number: u32, value: &Value) {
    for value in items(value) {
        item.message(number, |either| {
            either.message(1, |found| {
                found.text(1, &value["name"]);
                found.text(2, &value["in"]);
                found.text(3, &value["description"]);
                found.flag(4, &value["required"]);
                if let Some(nested) = value.get("schema") {
                    found.message(10, |found| schema_or_reference(found, nested));
                }
            });
        });
    }
}

/// Encodes a schema, or a reference without its siblings.
///
/// A message with two members, of which one is set.
fn schema_or_reference(item: &mut Message, value: &Value) {
    match value.get("$ref") {
        Some(_) => item.message(2, |found| found.text(1, &value["$ref"])),
        None => item.message(1, |found| schema(found, value)),
    }
}

/// Encodes a schema.
///
/// `format` and `description` come late in the message, after the alternatives.
fn schema(item: &mut Message, value: &Value) {
    item.flag(1, &value["nullable"]);
    if let Some(docs) = value.get("externalDocs") {
        item.message(6, |found| {
            found.text(1, &docs["description"]);
            found.text(2, &docs["url"]);
        });
    }
    if let Some(example) = value.get("example") {
        item.any(7, example);
    }
    item.text(9, &value["title"]);
    bounds(item, value);
    item.texts(23, &value["required"]);
    items(&value["enum"]).for_each(|value| item.any(24, value));
    item.text(25, &value["type"]);
    for (number, field) in [(26, "allOf"), (27, "oneOf"), (28, "anyOf")] {
        for nested in items(&value[field]) {
            item.message(number, |found| schema_or_reference(found, nested));
        }
    }
    if let Some(nested) = value.get("not") {
        item.message(29, |found| schema(found, nested));
    }
    if let Some(nested) = value.get("items") {
        item.message(30, |list| list.message(1, |found| schema_or_reference(found, nested)));
    }
    if value["properties"].is_object() {
        item.message(31, |properties| properties.named(1, &value["properties"], schema_or_reference));
    }
    match &value["additionalProperties"] {
        Value::Null => {}
        Value::Bool(allowed) => item.message(32, |either| either.varint(2, u64::from(*allowed))),
        nested => item.message(32, |either| either.message(1, |found| schema_or_reference(found, nested))),
    }
    default(item, value);
    item.text(34, &value["description"]);
    item.text(35, &value["format"]);
    item.extensions(36, value);
}

/// Encodes the bounds of a schema.
///
/// Zero bounds are indistinguishable from absent ones.
fn bounds(item: &mut Message, value: &Value) {
    item.number(10, &value["multipleOf"]);
    item.number(11, &value["maximum"]);
    item.flag(12, &value["exclusiveMaximum"]);
    item.number(13, &value["minimum"]);
    item.flag(14, &value["exclusiveMinimum"]);
    item.count(15, &value["maxLength"]);
    item.count(16, &value["minLength"]);
    item.text(17, &value["pattern"]);
    item.count(18, &value["maxItems"]);
    item.count(19, &value["minItems"]);
    item.flag(20, &value["uniqueItems"]);
    item.count(21, &value["maxProperties"]);
    item.count(22, &value["minProperties"]);
}

/// Encodes a default. The message has only numbers, booleans and strings; of other values only the presence is
/// encoded.
fn default(item: &mut Message, value: &Value) {
    match value.get("default") {
        None => {}
        Some(Value::Number(number)) => item.message(33, |any| any.double(1, number.as_f64().unwrap_or_default())),
        Some(Value::Bool(flag)) => item.message(33, |any| any.varint(2, u64::from(*flag))),
        Some(Value::String(text)) => item.message(33, |any| any.bytes(3, text.as_bytes())),
        Some(_) => item.message(33, |_nothing| {}),
    }
}

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
            let mut message = Message::default();
            schema_or_reference(&mut message, &value);
            assert_eq!(message.into_bytes(), expected, "{value}");
        }
    }
}
