//! Validates a value against its schema.
//!
//! Server-side apply needs typed values: a list of the wrong type has no elements that could be
//! owned. Only types and keys are checked here; formats, bounds and enums are left to the
//! validation of the kind.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::{
    field_set::PathElement,
    shape::{FieldPosition, Position, Scalar, Shape},
};
use crate::{decode::misfit, schema::ListType};

/// The treatment of duplicate list items.
///
/// Stored objects may have duplicates, since older versions of a schema allowed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// Accepted, because the object is already stored.
    Allowed,
    /// Rejected, because a client applies them.
    Refused,
}

/// Validates the types of all values and the keys of list items. Skips `metadata.managedFields`, and values that are
/// equal to those of an object validated before.
///
/// `checked` is the object that was validated before, at the same position.
///
/// # Errors
/// Returns a message that lists all invalid positions, as kube-apiserver does.
pub(crate) fn validate(
    position: Position<'_>,
    value: &Value,
    checked: Option<&Value>,
    duplicates: Duplicates,
) -> Result<(), String> {
    let mut validator = Validator { duplicates, errors: Vec::new() };
    validator.visit(position, value, checked, &ValuePath::Root);
    match validator.errors.as_slice() {
        [] => Ok(()),
        [message] => Err(message.clone()),
        all => Err(format!("errors:\n  {}", all.join("\n  "))),
    }
}

/// The path to a value, on the stack. It is formatted only in an error.
#[derive(Clone, Copy)]
enum ValuePath<'a> {
    /// Formatted as the empty string.
    Root,
    Field(&'a ValuePath<'a>, &'a str),
    /// A list item, which is named by its key.
    Element(&'a ValuePath<'a>, Position<'a>, ListType<'a>, usize, &'a Value),
    /// A list item without a valid key.
    Index(&'a ValuePath<'a>, usize),
}

impl ValuePath<'_> {
    /// Returns `true` for `metadata.managedFields`, which the server wrote itself.
    fn leads_to_managed_fields(&self, name: &str) -> bool {
        name == "managedFields" && matches!(self, Self::Field(Self::Root, "metadata"))
    }
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(parent, name) => write!(out, "{parent}.{name}"),
            Self::Element(parent, position, list, index, item) => {
                let element = position.element(*list, *index, item).unwrap_or_else(|_| PathElement::index(*index));
                write!(out, "{parent}{element}")
            }
            Self::Index(parent, index) => write!(out, "{parent}[{index}]"),
        }
    }
}

/// Returns `true` if the value has the type of `managedFields`.
pub(super) fn is_list_of_objects(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_object))
}

/// Validates a value recursively.
struct Validator {
    duplicates: Duplicates,
    /// The errors, in the order of the walk.
    errors: Vec<String>,
}

impl Validator {
    /// Adds the error of a value with a wrong type.
    ///
    /// The message has the type that was found.
    fn misfit(&mut self, path: &ValuePath<'_>, expected: &str, found: &Value) {
        self.errors.push(misfit(&path.to_string(), expected, found));
    }

    /// Adds an error at a path.
    ///
    /// An error at the root has no path.
    fn fail(&mut self, field_path: &ValuePath<'_>, message: &str) {
        let path = field_path.to_string();
        self.errors.push(if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") });
    }

    /// Validates a value at a position.
    ///
    /// `null` fits everywhere: it counts as absent.
    fn visit(&mut self, position: Position<'_>, value: &Value, checked: Option<&Value>, path: &ValuePath<'_>) {
        match (position.shape(value), value) {
            (_, Value::Null) => {}
            (Shape::Scalar(scalar), _) => self.visit_scalar(scalar, value, path),
            (Shape::List(list), Value::Array(items)) => self.visit_items(position, list, items, checked, path),
            (Shape::List(_), _) => self.misfit(path, "a list", value),
            (Shape::Map { .. }, Value::Object(fields)) => {
                let is_own =
                    |name: &str, value: &Value| path.leads_to_managed_fields(name) && is_list_of_objects(value);
                for (name, value) in fields.iter().filter(|(name, value)| !is_own(name, value)) {
                    let checked = checked.and_then(|checked| checked.get(name));
                    if checked == Some(value) {
                        continue;
                    }
                    let path = ValuePath::Field(path, name);
                    match position.field(name) {
                        FieldPosition::Named(position) | FieldPosition::Entry(position) => {
                            self.visit(position, value, checked, &path);
                        }
                        // Upstream also reports only the first such field of a map.
                        FieldPosition::Undeclared => return self.fail(&path, "field not declared in schema"),
                    }
                }
            }
            (Shape::Map { .. }, _) => self.misfit(path, "an object", value),
        }
    }

    /// Validates a scalar.
    ///
    /// Int-or-string and quantities accept every scalar.
    fn visit_scalar(&mut self, scalar: Scalar, value: &Value, path: &ValuePath<'_>) {
        let (is_fit, expected) = match scalar {
            Scalar::String => (value.is_string(), "a string"),
            Scalar::Numeric => (value.is_number(), "a number"),
            Scalar::Boolean => (value.is_boolean(), "a boolean"),
            Scalar::Any => (!value.is_array() && !value.is_object(), "a scalar"),
        };
        if !is_fit {
            self.misfit(path, expected, value);
        }
    }

    /// Validates the items of a list and their keys.
    ///
    /// An item without a valid key ends the validation of its list.
    fn visit_items(
        &mut self,
        position: Position<'_>,
        list: ListType<'_>,
        items: &[Value],
        checked: Option<&Value>,
        path: &ValuePath<'_>,
    ) {
        let checked = |index: usize| checked.and_then(|checked| checked.get(index));
        if list == ListType::Atomic {
            for (index, item) in items.iter().enumerate() {
                self.visit(position.items(), item, checked(index), &ValuePath::Index(path, index));
            }
            return;
        }
        let mut seen = BTreeSet::new();
        let may_repeat = self.duplicates == Duplicates::Refused && !position.are_distinct(list, items);
        for (index, item) in items.iter().enumerate() {
            if let Err(reason) = position.check_element(list, index, item) {
                return self.fail(path, &format!("element {index}: {reason}"));
            }
            if may_repeat
                && let Ok(element) = position.element(list, index, item)
                && !seen.insert(element.clone())
            {
                self.fail(path, &format!("duplicate entries for key {element}"));
            }
            self.visit(position.items(), item, checked(index), &ValuePath::Element(path, position, list, index, item));
        }
    }
}
