//! Defaults of the built-in kinds: takes an object as a client sent it, and completes it as kube-apiserver stores it.
//!
//! Behaviour: the `defaults.go` of each group in `k8s.io/kubernetes/pkg/apis`, and recorded responses of kube-apiserver
//! 1.37.
//!
//! The steps of `default_object`, in this order. `Defaults::set_rest` of the kind runs them, and may take parts out of
//! the object before and put them back afterwards:
//!
//! 1. Decoding: nulls, zero values and empty lists of fields that Go omits are removed. Quantities and times get their
//!    canonical form, so that two ways to write an object are stored alike.
//! 2. `Defaults::set` of the kind sets the defaults that Kubernetes documents.
//! 3. `zeros` adds the fields that Go writes even if they are zero.
//!
//! | helper | sets a field that is | for a Go field that is |
//! |---|---|---|
//! | `add` | absent or null | a pointer, where zero is a value of the client |
//! | `fill` | absent, null, zero or empty | not a pointer, where zero means unset |
//! | `part` | absent or null, to an empty object | a struct |
//!
//! `form` of the field in `data/proto.json` of this crate is `pointer` for a pointer.
//!
//! Parts that equal the stored object are skipped, because they went through these steps when they
//! were written.

mod image;
pub(crate) mod pod;
#[cfg(test)]
mod tests;
mod zeros;

use std::sync::LazyLock;

use jiff::Timestamp;
use kctl_apimachinery::time;
use serde_json::{Value, json};

use crate::{
    feature_gates,
    json_path::set_at,
    quantity,
    registry::kind::{Kind, Undecoded},
    schema::{PerPosition, Schema},
};

pub(crate) use self::pod::quality_of_service;

/// The type of an object that gets defaults.
#[derive(Clone, Copy)]
pub(crate) struct Type<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind_name: &'a str,
    /// The kind; `Kind::DEFAULT` for kinds of subresources, such as `Scale`.
    pub(crate) kind: &'static Kind,
}

/// Fills in the defaults of a built-in kind.
///
/// Nulls, zero values of non-pointer Go fields, and empty lists and maps count as absent and are removed, as
/// kube-apiserver does when it decodes an object. Quantities and times get their canonical form. A `Pod` also gets the
/// tolerations that the admission plugin `DefaultTolerationSeconds` sets. The function is idempotent.
///
/// Fields that depend on other objects (cluster IPs, node ports, service accounts) or on generated values (the
/// selector of a `Job`) are left to the caller. So are the finalizers of storage protection.
///
/// Parts that are equal in `stored` already have their defaults and are skipped.
pub(crate) fn default_object(type_info: Type<'_>, object: &mut Value, stored: Option<&Value>) {
    let Type { api_version, kind_name, kind } = type_info;
    let Some(schema) = Schema::built_in(api_version, kind_name) else { return };
    if !object.is_object() {
        return;
    }
    (kind.defaults.set_rest)(object, &mut |object| {
        decode(schema, object, stored);
        if stored.is_none_or(|stored| !has_defaults_of(kind, stored, object)) {
            (kind.defaults.set)(object);
            zeros::add(schema, object, stored);
        }
    });
}

/// Fills in the defaults that are set when an object is decoded. Webhooks see the object before the storage and the
/// strategy of its kind fill in the rest.
pub(crate) fn default_decoded(type_info: Type<'_>, object: &mut Value) {
    let later = type_info.kind.defaults.later;
    let decoded: Vec<Option<Value>> = later.iter().map(|(pointer, _)| object.pointer(pointer).cloned()).collect();
    default_object(type_info, object, None);
    for ((pointer, undecoded), decoded) in later.iter().zip(decoded) {
        match (decoded, undecoded) {
            (Some(decoded), _) => set_at(object, pointer, Some(decoded)),
            (None, Undecoded::Text(text)) => set_at(object, pointer, Some((*text).into())),
            (None, Undecoded::AsDefault) => {}
            (None, Undecoded::Absent) => set_at(object, pointer, None),
        }
    }
}

/// Returns `true` if an object equals the stored one, apart from metadata that the kind sets no defaults in.
fn has_defaults_of(kind: &Kind, stored: &Value, object: &Value) -> bool {
    let (Value::Object(stored), Value::Object(object)) = (stored, object) else { return false };
    let is_free = |name: &str| name == "metadata" && !kind.metadata.has_defaults;
    let is_same = |((name, was), (other, is)): ((&String, &Value), (&String, &Value))| {
        name == other && (was == is || is_free(name))
    };
    stored.len() == object.len() && stored.iter().zip(object).all(is_same)
}

/// Fields that Go leaves out of JSON if they are zero (`omitempty`), by type.
static LEFT_OUT: LazyLock<PerPosition<Vec<&'static str>>> = LazyLock::new(|| {
    PerPosition::new(|position| position.name().map(crate::proto::omitted_if_zero).unwrap_or_default())
});

/// Fields whose feature gates are off, by type.
static DISABLED: LazyLock<PerPosition<Vec<&'static str>>> = LazyLock::new(|| {
    PerPosition::new(|position| position.name().map(feature_gates::disabled_fields).unwrap_or_default())
});

/// A list that has a default if it is absent. An empty list is kept, because validation rejects it.
const REJECTED_EMPTY: (Option<&str>, &str) = (Some("io.k8s.api.autoscaling.v2.HPAScalingRules"), "policies");

/// Removes zeros that Go leaves out, nulls, empty lists and empty maps, and fields whose feature gates are off. A null
/// in a map of strings is the empty string. Quantities and times get their canonical form.
fn decode(schema: Schema<'_>, value: &mut Value, stored: Option<&Value>) {
    match value {
        Value::Array(items) => {
            if let Some(schema) = schema.items() {
                for (index, item) in items.iter_mut().enumerate() {
                    let stored = stored.and_then(|stored| stored.get(index));
                    if stored != Some(item) {
                        decode(schema, item, stored);
                    }
                }
            }
        }
        Value::Object(fields) => {
            let omitted_if_zero = LEFT_OUT.get(&schema).map_or(&[] as &[&str], Vec::as_slice);
            let disabled = DISABLED.get(&schema).map_or(&[] as &[&str], Vec::as_slice);
            fields.retain(|name, value| {
                if disabled.contains(&name.as_str()) {
                    return false;
                }
                let stored = stored.and_then(|stored| stored.get(name));
                // An empty `managedFields` list means that fields are no longer tracked.
                if name == "managedFields" || (stored == Some(value) && !value.is_null()) {
                    return true;
                }
                let is_zero = *value == false || *value == 0 || *value == "";
                if is_zero && omitted_if_zero.contains(&name.as_str()) {
                    return false;
                }
                schema.field(name).is_none_or(|field| decode_field(schema, name, field, value, stored))
            });
        }
        _ => {}
    }
}

/// Decodes a field of an object. Returns `false` if Go leaves the decoded value out of JSON.
fn decode_field(schema: Schema<'_>, name: &str, field: Schema<'_>, value: &mut Value, stored: Option<&Value>) -> bool {
    decode(field, value, stored);
    let is_entry = schema.property(name).is_none();
    if is(&QUANTITY, field) && is_entry {
        decode_quantity_entry(value);
    } else if is(&QUANTITY, field) {
        decode_quantity(quantity::canonical_fine, value);
    } else if is(&TIME, field) {
        decode_time(time::seconds, value);
    } else if is(&MICRO_TIME, field) {
        decode_time(time::micros, value);
    } else if value.is_null() && is_entry && field.type_name() == Some("string") {
        *value = "".into();
    }
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty() || schema.requires(name) || (schema.name(), name) == REJECTED_EMPTY,
        // Empty structs, which have no additional properties, are kept: `omitempty` only leaves out pointers to them.
        Value::Object(entries) => {
            !entries.is_empty() || schema.requires(name) || field.additional_properties().is_none()
        }
        _ => true,
    }
}

static QUANTITY: LazyLock<Option<Schema<'static>>> =
    LazyLock::new(|| Schema::for_type("io.k8s.apimachinery.pkg.api.resource.Quantity"));
static TIME: LazyLock<Option<Schema<'static>>> =
    LazyLock::new(|| Schema::for_type("io.k8s.apimachinery.pkg.apis.meta.v1.Time"));
static MICRO_TIME: LazyLock<Option<Schema<'static>>> =
    LazyLock::new(|| Schema::for_type("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"));

/// Returns `true` if a field has this type. Types are compared by address.
fn is(expected: &LazyLock<Option<Schema<'static>>>, schema: Schema<'_>) -> bool {
    expected.is_some_and(|expected| std::ptr::eq(expected.json(), schema.json()))
}

/// Writes a time in UTC, with the precision of its type. A time that jiff cannot represent is kept as sent.
fn decode_time(write: fn(Timestamp) -> String, value: &mut Value) {
    if let Some(time) = value.as_str().and_then(time::parse) {
        *value = write(time).into();
    }
}

/// Writes a quantity that is the value of a map, such as `requests`, in its canonical form. A null is `0` there.
fn decode_quantity_entry(value: &mut Value) {
    if value.is_null() {
        *value = "0".into();
    } else {
        decode_quantity(quantity::canonical, value);
    }
}

/// Writes a quantity in its canonical form. An invalid quantity is kept as sent, so that validation reports it.
fn decode_quantity(canonical: fn(&str) -> Option<String>, value: &mut Value) {
    let text = match value {
        Value::String(text) => canonical(text),
        Value::Number(number) => canonical(&number.to_string()),
        _ => None,
    };
    if let Some(text) = text {
        *value = text.into();
    }
}

/// Sets a field that is absent or null. For pointers in the Go type, where zero is a value.
pub(crate) fn add(object: &mut Value, key: &str, value: impl Into<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match fields.get_mut(key) {
        Some(Value::Null) | None => drop(fields.insert(key.to_owned(), value.into())),
        Some(_) => {}
    }
}

/// Sets a field that is absent, null, 0 or the empty string. For plain values in the Go type.
pub(crate) fn fill(object: &mut Value, key: &str, value: impl Into<Value>) {
    let is_zero = object.get(key).is_some_and(|field| field == "" || field == 0);
    if is_zero && let Some(field) = object.get_mut(key) {
        *field = Value::Null;
    }
    add(object, key, value);
}

/// Returns the object in a field, and creates it if it is absent or null.
pub(crate) fn part<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    add(object, key, json!({}));
    match object {
        Value::Object(fields) => fields.entry(key).or_insert(Value::Null),
        // A value that is not an object has no fields to set, so it is returned itself.
        other => other,
    }
}

/// Iterates over a list in a field; an absent one has no items.
pub(crate) fn items<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Returns `true` if the field is this string.
pub(crate) fn is_text(object: &Value, key: &str, text: &str) -> bool {
    object.get(key).is_some_and(|field| field == text)
}
