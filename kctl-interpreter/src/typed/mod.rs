//! The Go types of built-in kinds: converts JSON to a value with every field of the type, and back
//! as Karmada would write it.
//!
//! Karmada converts an object to its Go type and back whenever it reads inside. That is visible in
//! its results: unknown fields are gone, empty optional fields too, and required fields appear as
//! `null`, `""`, `0` or `{}`. The table `types.txt` says for each field of each struct how it
//! behaves. The table replaces the generated types of k8s-openapi, which treat absent and empty
//! fields in another way.
//!
//! A conversion has two halves: `decode` reads with the rules of one of Go's two decoders, and `encode` writes with the
//! rules of `runtime.DefaultUnstructuredConverter`.

mod decode;
mod encode;
mod table;
pub(crate) mod time;

use serde_json::{Map, Value};

pub(crate) use self::decode::{DecodeError, Parts};
use self::table::Type;

/// A value of a Go struct type.
///
/// A struct is a JSON object with the fields of the type. A nil pointer, slice, map or time is
/// null. Most fields of large structs are nil, so they are left out, which means the same.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    /// The name of the struct in `types.txt`.
    name: &'static str,
    value: Value,
}

impl Typed {
    /// Decodes an object as `runtime.DefaultUnstructuredConverter` does: names of fields must match
    /// exactly, and numbers that are too large wrap.
    pub(crate) fn from_object(name: &'static str, object: &Value) -> Result<Self, DecodeError> {
        Ok(Self { name, value: decode::convert(&Type::Struct(name), object, &[])? })
    }

    /// Decodes JSON as `encoding/json` does: names of fields match in any case, and numbers that
    /// are too large are errors.
    pub(crate) fn from_json(name: &'static str, json: &Value) -> Result<Self, DecodeError> {
        Ok(Self { name, value: decode::unmarshal(&Type::Struct(name), json, &[])? })
    }

    /// Decodes like [`Typed::from_object`], and keeps only some fields. All fields are checked.
    pub(crate) fn parts_of_object(name: &'static str, object: &Value, parts: Parts) -> Result<Self, DecodeError> {
        Ok(Self { name, value: decode::convert(&Type::Struct(name), object, parts)? })
    }

    /// Decodes like [`Typed::from_json`], and keeps only some fields. All fields are checked.
    pub(crate) fn parts_of_json(name: &'static str, json: &Value, parts: Parts) -> Result<Self, DecodeError> {
        Ok(Self { name, value: decode::unmarshal(&Type::Struct(name), json, parts)? })
    }

    pub(crate) fn zero(name: &'static str) -> Self {
        Self { name, value: table::zero(&Type::Struct(name)) }
    }

    /// Encodes the value as Karmada would write it.
    pub(crate) fn into_object(self) -> Value {
        encode::encode(&Type::Struct(self.name), self.value)
    }

    /// Encodes a part of a value: one value of the struct `name`, or a list of them.
    pub(crate) fn encode_part(name: &'static str, part: &Value) -> Value {
        match part {
            Value::Array(items) => items.iter().map(|item| Self::encode_part(name, item)).collect(),
            part => encode::encode(&Type::Struct(name), part.clone()),
        }
    }

    /// Returns the value at a JSON pointer; null for a path that does not exist, as behind a nil
    /// pointer.
    pub(crate) fn at(&self, pointer: &str) -> &Value {
        self.value.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// Returns the value at a JSON pointer for writing; a nil field becomes null.
    ///
    /// # Panics
    /// A struct on the path is nil, which is a fault of the rule that calls it.
    pub(crate) fn at_mut(&mut self, pointer: &str) -> &mut Value {
        let name = self.name;
        pointer.split('/').skip(1).fold(&mut self.value, |value, field| match value {
            Value::Object(fields) => fields.entry(field).or_insert(Value::Null),
            other => panic!("{name} has no field {pointer}: {other}"),
        })
    }

    /// Returns the object with another status. `object` is the one from which this value was decoded.
    /// It is returned as it is if it has the status already: Go's form of it may have other fields.
    pub(crate) fn with_status(mut self, status: Self, object: Value) -> Value {
        if is_same(self.at("/status"), &status.value) {
            return object;
        }
        *self.at_mut("/status") = status.value;
        self.into_object()
    }

    /// Returns the number at a JSON pointer; 0 if the path does not exist.
    pub(crate) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_default()
    }

    /// Returns the number behind a Go pointer; `None` if the pointer is nil.
    pub(crate) fn optional_number(&self, pointer: &str) -> Option<i64> {
        self.at(pointer).as_i64()
    }

    /// Returns the string at a JSON pointer; empty if the path does not exist.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    /// Returns the items of the list at a JSON pointer; an empty slice if it is nil.
    pub(crate) fn list(&self, pointer: &str) -> &[Value] {
        self.at(pointer).as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the decoded value, to be put into another value. Use [`Typed::into_object`] for a result.
    pub(crate) fn into_value(self) -> Value {
        self.value
    }
}

/// Returns `true` if two decoded values are equal. A field that is absent in one and null in the
/// other is equal.
pub(crate) fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let holds = |name: &String, value: &Value, other: &Map<String, Value>| {
                other.get(name).map_or(value.is_null(), |other| is_same(value, other))
            };
            a.iter().all(|(name, value)| holds(name, value, b)) && b.iter().all(|(name, value)| holds(name, value, a))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Parts, Typed};

    const PARTS: Parts = &[("PodSpec", &["containers"]), ("Container", &["resources"])];

    fn pod(container: &Value) -> Value {
        json!({"metadata": {"name": "web"}, "spec": {"nodeName": "n", "containers": [container]}})
    }

    #[test]
    fn parts_match_the_whole_value() {
        let object = pod(&json!({"name": "c", "env": [{"name": "A"}], "resources": {"limits": {"cpu": "1000m"}}}));
        for (name, whole, parts) in [
            ("object", Typed::from_object("Pod", &object), Typed::parts_of_object("Pod", &object, PARTS)),
            ("json", Typed::from_json("Pod", &object), Typed::parts_of_json("Pod", &object, PARTS)),
        ] {
            let (whole, parts) = (whole.unwrap(), parts.unwrap());
            for pointer in ["/spec/containers/0/resources", "/metadata", "/status"] {
                assert_eq!(parts.at(pointer), whole.at(pointer), "{name} {pointer}");
            }
            assert_eq!(parts.at("/spec/containers/0/resources/limits/cpu"), "1", "{name}");
            assert!(parts.at("/spec/nodeName").is_null() && parts.at("/spec/containers/0/env").is_null(), "{name}");
        }
    }

    #[test]
    fn unused_fields_are_validated_as_well() {
        for container in [
            json!({"env": [{"name": 1}]}),
            json!({"env": {"name": "A"}}),
            json!({"ports": [{"containerPort": 1.5}]}),
            json!({"ports": [{"containerPort": 5_000_000_000_i64}]}),
            json!({"livenessProbe": {"httpGet": {"port": true}}}),
            json!({"volumeDevices": [null, {"name": []}]}),
            json!({"ENV": [{"NAME": 1}]}),
            json!({"securityContext": {"privileged": "yes"}}),
            json!({"volumeMounts": [{"readOnly": null, "unknown": 1}]}),
        ] {
            let object = pod(&container);
            let text = |result: Result<Typed, super::DecodeError>| result.map(drop).map_err(|error| error.to_string());
            let converted = text(Typed::parts_of_object("Pod", &object, PARTS));
            assert_eq!(converted, text(Typed::from_object("Pod", &object)), "{object}");
            let read = text(Typed::parts_of_json("Pod", &object, PARTS));
            assert_eq!(read, text(Typed::from_json("Pod", &object)), "{object}");
        }
    }
}
