//! Validates a value against its schema.
//!
//! Server-side apply needs typed values: a list of the wrong type has no elements that could be owned. Only types and
//! keys are checked here; formats, bounds and enums are left to the validation of the kind.
//!
//! Upstream: `typed/validate.go` of structured-merge-diff.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::shape::{FieldPosition, Position, Scalar, Shape};
use crate::{decode::type_error, json_path::JsonPath, schema::ListType};

/// The treatment of duplicate list items. Stored objects may have duplicates, since older versions of a schema allowed
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// Accepted, because the object is already stored.
    Allowed,
    /// Rejected, because a client applies them.
    Rejected,
}

/// Validates the types of all values and the keys of list items. Skips `metadata.managedFields`, and values that are
/// equal to values of an object validated before. `checked` is the object that was validated before, at the same
/// position.
///
/// # Errors
/// Returns the path of the first invalid value and what is wrong with it.
pub(crate) fn validate(
    position: Position<'_>,
    value: &Value,
    checked: Option<&Value>,
    duplicates: Duplicates,
) -> Result<(), String> {
    visit(position, value, checked, duplicates, &JsonPath::Root)
}

/// Returns `true` if the value has the type of `managedFields`.
pub(super) fn is_list_of_objects(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_object))
}

/// Validates a value at a position. `null` fits everywhere: it counts as absent.
fn visit(
    position: Position<'_>,
    value: &Value,
    checked: Option<&Value>,
    duplicates: Duplicates,
    path: &JsonPath<'_>,
) -> Result<(), String> {
    let expected = match (position.shape(value), value) {
        (_, Value::Null) => return Ok(()),
        (Shape::Scalar(scalar), _) => match expected_of(scalar, value) {
            None => return Ok(()),
            Some(expected) => expected,
        },
        (Shape::List(list), Value::Array(items)) => {
            return visit_items(position, list, items, checked, duplicates, path);
        }
        (Shape::List(_), _) => "a list",
        (Shape::Map { .. }, Value::Object(fields)) => {
            return visit_fields(position, fields, checked, duplicates, path);
        }
        (Shape::Map { .. }, _) => "an object",
    };
    Err(type_error(&path.to_string(), expected, value))
}

/// Validates the fields of an object that differ from those validated before.
fn visit_fields(
    position: Position<'_>,
    fields: &Map<String, Value>,
    checked: Option<&Value>,
    duplicates: Duplicates,
    path: &JsonPath<'_>,
) -> Result<(), String> {
    let is_metadata = matches!(path, JsonPath::Field(JsonPath::Root, "metadata"));
    for (name, value) in fields {
        // The server wrote `managedFields` itself.
        let is_own = is_metadata && name == "managedFields" && is_list_of_objects(value);
        let checked = checked.and_then(|checked| checked.get(name));
        if is_own || checked == Some(value) {
            continue;
        }
        let path = JsonPath::Field(path, name);
        match position.field(name) {
            FieldPosition::Named(position) | FieldPosition::Entry(position) => {
                visit(position, value, checked, duplicates, &path)?;
            }
            FieldPosition::Undeclared => return Err(format!("{path}: field not declared in schema")),
        }
    }
    Ok(())
}

/// Returns the expected type if a value does not have it. Int-or-string and quantities accept every scalar.
fn expected_of(scalar: Scalar, value: &Value) -> Option<&'static str> {
    let (is_fit, expected) = match scalar {
        Scalar::String => (value.is_string(), "a string"),
        Scalar::Numeric => (value.is_number(), "a number"),
        Scalar::Boolean => (value.is_boolean(), "a boolean"),
        Scalar::Any => (!value.is_array() && !value.is_object(), "a scalar"),
    };
    (!is_fit).then_some(expected)
}

/// Validates the items of a list and their keys.
fn visit_items(
    position: Position<'_>,
    list: ListType<'_>,
    items: &[Value],
    checked: Option<&Value>,
    duplicates: Duplicates,
    path: &JsonPath<'_>,
) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let may_repeat =
        list != ListType::Atomic && duplicates == Duplicates::Rejected && !position.are_distinct(list, items);
    for (index, item) in items.iter().enumerate() {
        if list != ListType::Atomic {
            position.check_element(list, index, item).map_err(|why| format!("{path}: element {index}: {why}"))?;
        }
        if may_repeat
            && let Ok(element) = position.path_element(list, index, item)
            && !seen.insert(element.clone())
        {
            return Err(format!("{path}: duplicate entries for key {element}"));
        }
        let checked = checked.and_then(|checked| checked.get(index));
        visit(position.items(), item, checked, duplicates, &JsonPath::Item(path, index))?;
    }
    Ok(())
}
