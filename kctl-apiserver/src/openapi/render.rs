//! Writes operations as `OpenAPI` v2 or v3.
//!
//! Only this file handles the differences between the versions in the form of operations. Schemas differ in `types` and
//! `custom`.

use serde_json::{Map, Value, json};

use super::{
    openapi_version::OpenApiVersion,
    operations::{OpenApiOperation, PathItem},
    parameters::{self, ParameterUse},
};

/// Returns a parameter. In version 2 a shared parameter is a reference.
fn parameter(used: &ParameterUse, version: OpenApiVersion) -> Value {
    match version {
        OpenApiVersion::Two => used.v2(),
        OpenApiVersion::Three => used.v3(),
    }
}

/// Returns the Path Item Object with all methods of a path.
pub(super) fn path(path: &PathItem, version: OpenApiVersion) -> Value {
    let mut item = Map::new();
    for operation in &path.operations {
        let shown = match version {
            OpenApiVersion::Two => v2(operation),
            OpenApiVersion::Three => v3(operation),
        };
        item.insert(operation.method.into(), shown);
    }
    if !path.parameters.is_empty() {
        let parameters = path.parameters.iter().map(|used| parameter(used, version));
        item.insert("parameters".into(), parameters.collect());
    }
    item.into()
}

/// Returns the fields that both versions share. In version 2 the body is a parameter.
fn common(operation: &OpenApiOperation, version: OpenApiVersion) -> Value {
    let mut shown =
        json!({ "description": operation.description, "operationId": operation.id, "tags": [operation.tag] });
    if let (Some(action), Some(kind)) = (operation.action, &operation.kind) {
        shown["x-kubernetes-action"] = action.into();
        shown["x-kubernetes-group-version-kind"] = kind.clone();
    }
    let mut parameters: Vec<((&str, &str), Value)> =
        operation.parameters.iter().map(|used| (used.order(), parameter(used, version))).collect();
    if let (OpenApiVersion::Two, Some(body)) = (version, &operation.body) {
        let shared = body.shared.and_then(|variant| parameters::find("body", variant));
        let shared = shared.map(|declared| ParameterUse::Known(declared).v2());
        let own =
            || json!({ "name": "body", "in": "body", "required": true, "schema": version.reference(&body.type_name) });
        parameters.push((("body", "body"), shared.unwrap_or_else(own)));
    }
    parameters.sort_by_key(|(order, _)| *order);
    if !parameters.is_empty() {
        shown["parameters"] = parameters.into_iter().map(|(_, parameter)| parameter).collect();
    }
    shown
}

/// Returns the schema of an operation's response. Logs and connections return strings.
fn response_schema(operation: &OpenApiOperation, version: OpenApiVersion) -> Value {
    operation.response_type.as_ref().map_or_else(|| json!({ "type": "string" }), |name| version.reference(name))
}

/// Writes an operation of version 2.
fn v2(operation: &OpenApiOperation) -> Value {
    let mut shown = common(operation, OpenApiVersion::Two);
    if !operation.consumes.is_empty() {
        shown["consumes"] = json!(operation.consumes);
    }
    shown["produces"] = json!(operation.produces);
    shown["schemes"] = json!(["https"]);
    let schema = response_schema(operation, OpenApiVersion::Two);
    for (code, meaning) in operation.responses {
        shown["responses"][code] = json!({ "description": meaning, "schema": schema });
    }
    shown["responses"]["401"] = json!({ "description": "Unauthorized" });
    shown
}

/// Writes an operation of version 3.
fn v3(operation: &OpenApiOperation) -> Value {
    let mut shown = common(operation, OpenApiVersion::Three);
    let content = |forms: &[&str], schema: Value| {
        forms.iter().map(|form| ((*form).to_owned(), json!({ "schema": schema }))).collect::<Map<_, _>>()
    };
    if let Some(body) = &operation.body {
        let content = content(operation.consumes, OpenApiVersion::Three.reference(&body.type_name));
        shown["requestBody"] = json!({ "content": content });
        if body.is_required {
            shown["requestBody"]["required"] = true.into();
        }
    }
    let content = content(operation.produces, response_schema(operation, OpenApiVersion::Three));
    for (code, meaning) in operation.responses {
        shown["responses"][code] = json!({ "description": meaning, "content": content });
    }
    shown["responses"]["401"] = json!({ "description": "Unauthorized" });
    shown
}
