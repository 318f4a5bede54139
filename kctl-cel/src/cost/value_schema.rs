//! How large values of a schema can be: reads a schema, hands on bounds and types.
//!
//! Upstream: `SchemaDeclType` in `pkg/cel/common/schemas.go` of apiserver, and `limits.go` beside it.

use std::rc::Rc;

use serde_json::Value;

use crate::plain_name;

/// Bytes of a request: what has no bound of its own is as long as that allows.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;
/// Without the quotes or brackets around it.
const VALUE_BYTES_MAX: u64 = REQUEST_BYTES_MAX - 2;

/// A bound from below and one from above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Size {
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(super) fn exactly(size: u64) -> Self {
        Self { min: size, max: size }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// What is declared of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Declared<'a> {
    /// A schema, and whether its objects have metadata of their own.
    Schema(&'a Value, bool),
    /// What rules see of the metadata of an object.
    Metadata,
    /// A text of any length.
    Text,
    /// A key of a map, whose length nothing is said of.
    Key,
}

/// The type of an expression, as far as costs depend on it.
#[derive(Clone, Debug)]
pub(super) enum Type<'a> {
    /// Known when it is evaluated.
    Any,
    /// Numbers, truth values, times.
    Scalar,
    Text,
    Bytes,
    List(Rc<Type<'a>>),
    Map(Rc<Type<'a>>),
    Object(Declared<'a>),
    Optional(Rc<Type<'a>>),
    /// Quantities, addresses and the like.
    Opaque,
    /// Null, types, formats.
    Other,
}

impl Type<'_> {
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Scalar => true,
            Self::Optional(of) => of.is_scalar(),
            _ => false,
        }
    }
}

impl<'a> Declared<'a> {
    /// The most items, fields or bytes of a value; nothing for what has no parts.
    pub(super) fn elements_max(self) -> u64 {
        let Self::Schema(schema, _) = self else {
            return if matches!(self, Self::Text) { VALUE_BYTES_MAX } else { 0 };
        };
        // A bound below zero is none.
        let said = |key: &str| schema[key].as_i64().map(|said| u64::try_from(said).unwrap_or(0));
        let characters = said("maxLength").map(|length| length.saturating_mul(4));
        if schema["x-kubernetes-int-or-string"] == true {
            return characters.unwrap_or(VALUE_BYTES_MAX);
        }
        match schema["type"].as_str().unwrap_or_default() {
            "array" => said("maxItems").unwrap_or_else(|| VALUE_BYTES_MAX / (of_items(schema).bytes_min() + 1)),
            "object" if schema["additionalProperties"].is_object() => {
                said("maxProperties").unwrap_or_else(|| VALUE_BYTES_MAX / (of_values(schema).bytes_min() + 6))
            }
            "string" => match schema["format"].as_str().unwrap_or_default() {
                "byte" => said("maxLength").unwrap_or(VALUE_BYTES_MAX),
                "duration" | "date-time" => 32,
                "date" => 12,
                _ => characters.or_else(|| longest(&schema["enum"])).unwrap_or(VALUE_BYTES_MAX),
            },
            _ => 0,
        }
    }

    /// The fewest bytes of a value in JSON.
    pub(super) fn bytes_min(self) -> u64 {
        let Self::Schema(schema, _) = self else { return 2 };
        if schema["x-kubernetes-int-or-string"] == true {
            return 1;
        }
        match schema["type"].as_str().unwrap_or_default() {
            "object" if !schema["additionalProperties"].is_object() => {
                let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                // What has a default may be left out.
                let fields = required.filter(|name| schema["properties"][*name].get("default").is_none());
                let sizes = fields.filter_map(|name| Some((name.len() as u64, self.field(name)?.bytes_min())));
                sizes.fold(2, |sum, (name, value)| sum + name + value + 4)
            }
            "string" => match schema["format"].as_str().unwrap_or_default() {
                "duration" => 3,
                "date" => 12,
                "date-time" => 21,
                _ => 2,
            },
            "boolean" => 4,
            "array" | "object" => 2,
            _ => 1,
        }
    }

    /// How many values of it a request can have.
    pub(super) fn count_max(self) -> u64 {
        REQUEST_BYTES_MAX / (self.bytes_min() + 1)
    }

    /// What is below: a field as CEL names it, or one of the words for items, keys and values.
    pub(super) fn below(self, step: &str) -> Option<Self> {
        let Self::Schema(schema, _) = self else { return self.field(step) };
        let is_map = schema["type"] == "object" && schema["additionalProperties"].is_object();
        match step {
            "@items" | "@values" if schema["type"] == "array" => Some(of_items(schema)),
            "@items" | "@values" => is_map.then(|| of_values(schema)),
            "@keys" => is_map.then_some(Self::Key),
            _ if is_map => None,
            name => self.field(&plain_name(name)),
        }
    }

    fn field(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Metadata, "name" | "generateName") | (Self::Schema(_, true), "apiVersion" | "kind") => {
                Some(Self::Text)
            }
            (Self::Schema(_, true), "metadata") => Some(Self::Metadata),
            (Self::Schema(schema, _), name) => {
                let field = schema["properties"].get(name)?;
                let is_typed = field["type"].is_string() || field["x-kubernetes-int-or-string"] == true;
                is_typed.then(|| of(field))
            }
            _ => None,
        }
    }

    pub(super) fn r#type(self) -> Type<'a> {
        let Self::Schema(schema, _) = self else {
            return if matches!(self, Self::Metadata) { Type::Object(self) } else { Type::Text };
        };
        if schema["x-kubernetes-int-or-string"] == true {
            return Type::Any;
        }
        match schema["type"].as_str().unwrap_or_default() {
            "array" => Type::List(Rc::new(of_items(schema).r#type())),
            "object" if schema["additionalProperties"].is_object() => Type::Map(Rc::new(of_values(schema).r#type())),
            "object" => Type::Object(self),
            "string" => match schema["format"].as_str().unwrap_or_default() {
                "byte" => Type::Bytes,
                "duration" | "date" | "date-time" => Type::Scalar,
                _ => Type::Text,
            },
            "boolean" | "integer" | "number" => Type::Scalar,
            _ => Type::Any,
        }
    }
}

pub(super) fn of(schema: &Value) -> Declared<'_> {
    Declared::Schema(schema, schema["x-kubernetes-embedded-resource"] == true)
}

fn of_items(schema: &Value) -> Declared<'_> {
    of(&schema["items"])
}

fn of_values(schema: &Value) -> Declared<'_> {
    of(&schema["additionalProperties"])
}

fn longest(values: &Value) -> Option<u64> {
    let values = values.as_array().filter(|values| !values.is_empty())?;
    Some(values.iter().filter_map(Value::as_str).map(|text| text.len() as u64).max().unwrap_or(0))
}
