//! The types of CEL, and which one the values of a schema have (`pkg/cel/common/schemas.go` of apiserver).

use std::{collections::BTreeMap, fmt, rc::Rc};

use serde_json::Value;

use crate::marks::{RESERVED, escape};

/// A type of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// Known only when it is evaluated; also what stands for a mistake that was told.
    Any,
    /// `bool`, `int`, `string`, `Quantity` and so on.
    Plain(&'static str),
    List(Rc<Type>),
    Map(Rc<Type>, Rc<Type>),
    Optional(Rc<Type>),
    Object(Rc<BTreeMap<String, Type>>),
    /// A variable in the declaration of a function.
    Variable(char),
}

/// Bytes of a request (`celconfig.MaxRequestSizeBytes`).
pub(super) const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

impl Type {
    pub(super) fn list(of: Self) -> Self {
        Self::List(Rc::new(of))
    }

    pub(super) fn map(key: Self, value: Self) -> Self {
        Self::Map(Rc::new(key), Rc::new(value))
    }

    pub(super) fn optional(of: Self) -> Self {
        Self::Optional(Rc::new(of))
    }

    /// Whether a value of it is one of this plain type.
    pub(super) fn is(&self, name: &str) -> bool {
        matches!(self, Self::Any) || matches!(self, Self::Plain(own) if *own == name)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => write!(f, "any"),
            Self::Plain(name) => write!(f, "{name}"),
            Self::List(of) => write!(f, "list of {of}"),
            Self::Map(key, value) => write!(f, "map of {key} to {value}"),
            Self::Optional(of) => write!(f, "optional {of}"),
            Self::Object(_) => write!(f, "object"),
            Self::Variable(name) => write!(f, "{name}"),
        }
    }
}

/// The type of the values of a schema; none where API servers know none.
pub(super) fn of_schema(schema: &Value, is_object: bool) -> Option<Type> {
    if schema["x-kubernetes-int-or-string"] == true {
        return Some(Type::Any);
    }
    let below = |schema: &Value| of_schema(schema, schema["x-kubernetes-embedded-resource"] == true);
    Some(match schema["type"].as_str()? {
        "array" => Type::list(below(&schema["items"])?),
        "object" if schema["additionalProperties"].is_object() => {
            Type::map(Type::Plain("string"), below(&schema["additionalProperties"])?)
        }
        "object" => {
            let mut fields = BTreeMap::new();
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(known) = below(field).filter(|_| can_be_escaped(name)) {
                    fields.insert(escape(name), known);
                }
            }
            if is_object {
                let name =
                    BTreeMap::from(["name", "generateName"].map(|name| (name.to_owned(), Type::Plain("string"))));
                fields.insert("metadata".to_owned(), Type::Object(Rc::new(name)));
                for name in ["apiVersion", "kind"] {
                    fields.insert(name.to_owned(), Type::Plain("string"));
                }
            }
            Type::Object(Rc::new(fields))
        }
        "string" => Type::Plain(match schema["format"].as_str() {
            Some("byte") => "bytes",
            Some("duration") => "duration",
            Some("date" | "date-time") => "timestamp",
            _ => "string",
        }),
        "boolean" => Type::Plain("bool"),
        "number" => Type::Plain("double"),
        "integer" => Type::Plain("int"),
        _ => return None,
    })
}

/// Names of other characters are no fields in CEL.
fn can_be_escaped(name: &str) -> bool {
    let is_known = |char: char| char.is_ascii_alphanumeric() || ['_', '.', '-', '/'].contains(&char);
    RESERVED.contains(&name)
        || (!name.is_empty() && !name.starts_with(|char: char| char.is_ascii_digit()) && name.chars().all(is_known))
}

/// How many items, values or characters there can be: what is said, or what fits into a request.
pub(super) fn max_elements(schema: &Value) -> u64 {
    let said = |key: &str| schema[key].as_u64();
    match schema["type"].as_str() {
        Some("array") => said("maxItems").unwrap_or_else(|| list_max(&schema["items"])),
        Some("object") => said("maxProperties")
            .unwrap_or_else(|| (REQUEST_BYTES_MAX - 2) / (min_bytes(&schema["additionalProperties"]) + 6)),
        Some("string") => string_max(schema),
        _ => 1,
    }
}

/// How many values of a schema fit into a request.
pub(super) fn max_in_request(schema: &Value) -> u64 {
    REQUEST_BYTES_MAX / (min_bytes(schema) + 1)
}

fn list_max(items: &Value) -> u64 {
    // A comma between two.
    (REQUEST_BYTES_MAX - 2) / (min_bytes(items) + 1)
}

fn string_max(schema: &Value) -> u64 {
    if let Some(length) = schema["maxLength"].as_u64() {
        // A character has up to four bytes.
        return length.saturating_mul(4);
    }
    let longest = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::len).max();
    match (longest, schema["format"].as_str()) {
        (Some(longest), _) => longest as u64,
        (None, Some("duration")) => 32,
        (None, Some("date")) => 10,
        (None, Some("date-time")) => 25,
        _ => REQUEST_BYTES_MAX - 2,
    }
}

/// The fewest bytes that a value takes in JSON.
fn min_bytes(schema: &Value) -> u64 {
    if schema["x-kubernetes-int-or-string"] == true {
        return 1;
    }
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let fields = required.filter(|name| schema["properties"][*name]["default"].is_null());
            // The quotes, the colon and the comma.
            2 + fields.map(|name| name.len() as u64 + min_bytes(&schema["properties"][name]) + 4).sum::<u64>()
        }
        Some("string") => match schema["format"].as_str() {
            Some("date-time") => 22,
            Some("date") => 12,
            Some("duration") => 3,
            _ => 2,
        },
        Some("boolean") => 4,
        Some("array") => 2,
        _ => 1,
    }
}
