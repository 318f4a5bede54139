//! Whether a value has the shape that its schema asks for, with the texts of the API server.

use serde_json::Value;

use super::{
    field_set::PathElement,
    shape::{FieldPlace, Place, Scalar, Shape},
};
use crate::schema::ListType;

/// Whether items of a list may occur more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// In objects that are stored already.
    Allowed,
    /// In what a client applies.
    Refused,
}

/// Checks the types of all values and that items of lists can be told apart.
///
/// # Errors
/// The text names every place at fault, as the API server does.
pub fn validate(place: Place<'_>, value: &Value, duplicates: Duplicates) -> Result<(), String> {
    let mut walk = Walk { duplicates, path: String::new(), errors: Vec::new() };
    walk.visit(place, value);
    match walk.errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        all => Err(format!("errors:\n  {}", all.join("\n  "))),
    }
}

struct Walk {
    duplicates: Duplicates,
    path: String,
    errors: Vec<String>,
}

impl Walk {
    fn fail(&mut self, message: &str) {
        let path = &self.path;
        self.errors.push(if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") });
    }

    fn below(&mut self, element: &PathElement, visit: impl FnOnce(&mut Self)) {
        let len = self.path.len();
        self.path.push_str(&element.to_string());
        visit(self);
        self.path.truncate(len);
    }

    fn visit(&mut self, place: Place<'_>, value: &Value) {
        match (place.shape(value), value) {
            (_, Value::Null) => {}
            (Shape::Scalar(scalar), _) => self.visit_scalar(scalar, value),
            (Shape::List(list), Value::Array(items)) => self.visit_items(place, list, items),
            (Shape::List(_), _) => self.fail(&format!("expected list, got &{{{}}}", go_text(value))),
            (Shape::Map { .. }, Value::Object(fields)) => {
                for (name, value) in fields {
                    self.below(&PathElement::field(name), |walk| match place.field(name) {
                        FieldPlace::Named(place) | FieldPlace::Entry(place) => walk.visit(place, value),
                        FieldPlace::Undeclared => walk.fail("field not declared in schema"),
                    });
                }
            }
            (Shape::Map { .. }, _) => self.fail(&format!("expected map, got &{{{}}}", go_text(value))),
        }
    }

    fn visit_scalar(&mut self, scalar: Scalar, value: &Value) {
        let message = match scalar {
            Scalar::String if !value.is_string() => {
                format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_literal(value))
            }
            Scalar::Numeric if !value.is_number() => {
                format!("expected numeric (int or float), got {}", go_type(value))
            }
            Scalar::Boolean if !value.is_boolean() => format!("expected boolean, got &{{{}}}", go_text(value)),
            Scalar::Any if value.is_array() || value.is_object() => {
                format!("expected any scalar, got &{{{}}}", go_text(value))
            }
            _ => return,
        };
        self.fail(&message);
    }

    fn visit_items(&mut self, place: Place<'_>, list: ListType<'_>, items: &[Value]) {
        let mut seen = std::collections::BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = match place.element(list, index, item) {
                Ok(element) => element,
                Err(reason) => return self.fail(&format!("element {index}: {reason}")),
            };
            if !seen.insert(element.clone()) && self.duplicates == Duplicates::Refused {
                self.fail(&format!("duplicate entries for key {element}"));
            }
            self.below(&element, |walk| walk.visit(place.items(), item));
        }
    }
}

/// A value as Go prints it with `%v`.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}:{}", go_text(value))).collect();
            fields.sort();
            format!("map[{}]", fields.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// A value as Go prints it with `%#v`.
fn go_literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Array(items) => {
            format!("{}{{{}}}", go_type(value), items.iter().map(go_literal).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), go_literal(value)));
            let mut fields: Vec<_> = fields.collect();
            fields.sort();
            format!("{}{{{}}}", go_type(value), fields.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

/// The type of a value as Go prints it with `%T`.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
