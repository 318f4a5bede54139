//! The sizes and types of the values that a schema allows.
//!
//! Upstream: `SchemaDeclType` in `pkg/cel/common/schemas.go` of apiserver, and `limits.go` in the same folder.

use std::rc::Rc;

use serde_json::Value;

use crate::{SchemaOf, plain_name};

/// Maximum size of a request in bytes (`MaxRequestSizeBytes`). It bounds values whose schema has no bound.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;
/// The same without the quotes or brackets around the value.
const VALUE_BYTES_MAX: u64 = REQUEST_BYTES_MAX - 2;

/// The minimum and maximum size of a value. Invariant of sizes from a schema: `min <= max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Minimum, in characters, bytes, items or entries.
    pub(super) min: u64,
    /// Maximum; `u64::MAX` without a bound.
    pub(super) max: u64,
}

impl Size {
    /// The size of a value that nothing bounds.
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    /// Returns the size of a value that is known.
    pub(super) fn exactly(size: u64) -> Self {
        Self { min: size, max: size }
    }

    /// Adds two sizes: a concatenation.
    pub(super) fn saturating_add(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// Multiplies two sizes: nested loops.
    pub(super) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Returns a size that covers both.
    pub(super) fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// The schema of a value, or one of the implicit schemas of objects.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueSchema<'a> {
    /// A schema of the CRD.
    Schema(&'a Value, SchemaOf),
    /// `metadata`: rules see only its `name` and `generateName`.
    Metadata,
    /// A string without a bound, such as `metadata.name`.
    Text,
    /// A key of a map. Upstream assumes no size for it.
    Key,
}

/// The type of an expression, as far as costs depend on it.
#[derive(Clone, Debug)]
pub(super) enum Type<'a> {
    /// Known only at evaluation.
    Any,
    /// Numbers, booleans, durations and timestamps, which have size 1.
    Scalar,
    /// Strings, whose size is their length in characters.
    Text,
    /// Bytes, whose size is their length.
    Bytes,
    /// Lists with the type of their items.
    List(Rc<Type<'a>>),
    /// Maps with the type of their values; keys are strings.
    Map(Rc<Type<'a>>),
    /// Objects with their schema.
    Object(ValueSchema<'a>),
    /// Values that may be absent.
    Optional(Rc<Type<'a>>),
    /// Quantities, IP addresses, URLs: compared at cost 1.
    Opaque,
    /// `null`, types, formats.
    Other,
}

impl Type<'_> {
    /// Returns `true` for types whose values have size 1.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Scalar => true,
            Self::Optional(of) => of.is_scalar(),
            _ => false,
        }
    }
}

impl<'a> ValueSchema<'a> {
    /// Returns the maximum number of items, entries or bytes of a value; 0 for scalars.
    ///
    /// `maxLength` counts characters, which have up to four bytes. Without bounds, the size of a request and the minimum size
    /// of an item limit it.
    pub(super) fn elements_max(self) -> u64 {
        let Self::Schema(schema, _) = self else {
            return if matches!(self, Self::Text) { VALUE_BYTES_MAX } else { 0 };
        };
        // A negative bound counts as 0, as upstream converts it.
        let bound = |key: &str| schema[key].as_i64().map(|bound| u64::try_from(bound).unwrap_or(0));
        let characters = bound("maxLength").map(|length| length.saturating_mul(4));
        if schema["x-kubernetes-int-or-string"] == true {
            return characters.unwrap_or(VALUE_BYTES_MAX);
        }
        match schema["type"].as_str().unwrap_or_default() {
            "array" => bound("maxItems").unwrap_or_else(|| VALUE_BYTES_MAX / (items_schema(schema).bytes_min() + 1)),
            "object" if schema["additionalProperties"].is_object() => {
                bound("maxProperties").unwrap_or_else(|| VALUE_BYTES_MAX / (values_schema(schema).bytes_min() + 6))
            }
            "string" => match schema["format"].as_str().unwrap_or_default() {
                "byte" => bound("maxLength").unwrap_or(VALUE_BYTES_MAX),
                "duration" | "date-time" => 32,
                "date" => 12,
                _ => characters.or_else(|| longest(&schema["enum"])).unwrap_or(VALUE_BYTES_MAX),
            },
            _ => 0,
        }
    }

    /// Returns the minimum number of bytes of a value in JSON (`DeclType.MinSerializedSize`).
    pub(super) fn bytes_min(self) -> u64 {
        let Self::Schema(schema, _) = self else { return 2 };
        if schema["x-kubernetes-int-or-string"] == true {
            return 1;
        }
        match schema["type"].as_str().unwrap_or_default() {
            "object" if !schema["additionalProperties"].is_object() => {
                let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                // A field with a default may be absent in a request.
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

    /// Returns the maximum number of such values in a request.
    pub(super) fn count_max(self) -> u64 {
        REQUEST_BYTES_MAX / (self.bytes_min() + 1)
    }

    /// Returns the schema one step down: a field by its escaped name, or `@items`, `@keys`, `@values`.
    pub(super) fn below(self, step: &str) -> Option<Self> {
        let Self::Schema(schema, _) = self else { return self.field(step) };
        let is_map = schema["type"] == "object" && schema["additionalProperties"].is_object();
        match step {
            "@items" | "@values" if schema["type"] == "array" => Some(items_schema(schema)),
            "@items" | "@values" => is_map.then(|| values_schema(schema)),
            "@keys" => is_map.then_some(Self::Key),
            _ if is_map => None,
            name => self.field(&plain_name(name)),
        }
    }

    /// Returns the schema of a field by its plain name.
    fn field(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Metadata, "name" | "generateName") | (Self::Schema(_, SchemaOf::Object), "apiVersion" | "kind") => {
                Some(Self::Text)
            }
            (Self::Schema(_, SchemaOf::Object), "metadata") => Some(Self::Metadata),
            (Self::Schema(schema, _), name) => {
                let field = schema["properties"].get(name)?;
                let is_typed = field["type"].is_string() || field["x-kubernetes-int-or-string"] == true;
                is_typed.then(|| for_value(field))
            }
            _ => None,
        }
    }

    /// Returns the type of the values.
    pub(super) fn r#type(self) -> Type<'a> {
        let Self::Schema(schema, _) = self else {
            return if matches!(self, Self::Metadata) { Type::Object(self) } else { Type::Text };
        };
        if schema["x-kubernetes-int-or-string"] == true {
            return Type::Any;
        }
        match schema["type"].as_str().unwrap_or_default() {
            "array" => Type::List(Rc::new(items_schema(schema).r#type())),
            "object" if schema["additionalProperties"].is_object() => {
                Type::Map(Rc::new(values_schema(schema).r#type()))
            }
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

/// Returns the schema of a nested value.
pub(super) fn for_value(schema: &Value) -> ValueSchema<'_> {
    ValueSchema::Schema(schema, SchemaOf::Value.or_embedded(schema))
}

/// Returns the schema of the items of an array.
fn items_schema(schema: &Value) -> ValueSchema<'_> {
    for_value(&schema["items"])
}

/// Returns the schema of the values of a map.
fn values_schema(schema: &Value) -> ValueSchema<'_> {
    for_value(&schema["additionalProperties"])
}

/// Returns the length of the longest value of an `enum` in bytes; `None` without one.
fn longest(values: &Value) -> Option<u64> {
    let values = values.as_array().filter(|values| !values.is_empty())?;
    Some(values.iter().filter_map(Value::as_str).map(|text| text.len() as u64).max().unwrap_or(0))
}
