//! What an object is before anything is set: the value that a create is compared with. Go always writes the structs of a
//! built-in type, and fields without `omitempty`: creating an object does not own them, only what differs from that.

use serde_json::{Map, Value, json};

use crate::{proto, schema::Schema};

/// The zero value of a kind. Objects of custom resources start as nothing but their kind.
pub(super) fn zero(schema: Option<Schema<'_>>, new: &Value) -> Value {
    let Some(name) = schema.and_then(|schema| schema.name()).filter(|_| is_built_in(schema, new)) else {
        return json!({ "apiVersion": new["apiVersion"], "kind": new["kind"] });
    };
    let fields = proto::always(name);
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
}

/// Whether an object is of a kind whose type the API server is built with.
pub(super) fn is_built_in(schema: Option<Schema<'_>>, object: &Value) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    schema.is_some() && Schema::built_in(text("apiVersion"), text("kind")).is_some()
}
