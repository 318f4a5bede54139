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
