//! The zero value with which a create is compared. Go always writes the structs of a built-in type, and fields without
//! `omitempty`. The creator of an object owns only the fields that differ from it.
//!
//! Upstream: `createHandler` of `k8s.io/apiserver/pkg/endpoints/handlers/create.go`, which compares with an empty
//! object of the kind.

use serde_json::{Map, Value, json};

use crate::{proto, schema::Schema};

/// Returns the zero value of a kind. A custom object has only its `apiVersion` and `kind`. Without this, the creator
/// would own fields that Go writes for it, such as `status: {}`.
pub(super) fn zero(schema: Option<Schema<'_>>, new: &Value) -> Value {
    let Some(name) = schema.and_then(|schema| schema.name()).filter(|_| is_built_in(schema, new)) else {
        return json!({ "apiVersion": new["apiVersion"], "kind": new["kind"] });
    };
    let fields = proto::always_written_fields(name);
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// Returns `true` if an object is of a built-in kind.
pub(super) fn is_built_in(schema: Option<Schema<'_>>, object: &Value) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    schema.is_some() && Schema::built_in(text("apiVersion"), text("kind")).is_some()
}
