//! The table of Go types: the fields of each struct, their types, and the conditions under which
//! they are left out.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::{Map, Value};

/// A Go type, as far as its JSON form depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// `interface{}`: any JSON, kept as it is.
    Any,
    /// `bool`.
    Bool,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `intstr.IntOrString`: a 32-bit number or a string.
    IntOrString,
    /// `resource.Quantity`: a string, or a number that becomes one.
    Quantity,
    /// `string`, and types based on it.
    String,
    /// `metav1.Time`: an RFC 3339 string, or null for the zero time.
    Time,
    /// A slice.
    List(Box<Type>),
    /// A map with string keys.
    Map(Box<Type>),
    /// A pointer, null if it is nil.
    Pointer(Box<Type>),
    /// A struct, by its name in the table.
    Struct(&'static str),
}

/// A field of a struct. Fields of embedded structs are listed with the fields of the outer struct, as in their JSON.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) r#type: Type,
    /// The condition under which the field is left out.
    pub(super) omitted: Omitted,
}

/// The condition under which encoding leaves a field out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omitted {
    /// The field has no such tag, so it is always written.
    Never,
    /// `omitempty`: false, 0, an empty string, nil, and lists and maps without items. A struct is
    /// never empty.
    Empty,
    /// `omitzero`: the same, and a struct with its zero value.
    Zero,
}

/// The table as text: one line per struct, with its name and then `field:type` for each field.
///
/// A `?` after the name of a field is `omitempty`, and `!` is `omitzero`. Before a type, `*` is a
/// pointer, `[]` a slice and `{}` a map with string keys. `tests/interop/karmada-types` prints the
/// lines by reflection over the versions of `k8s.io/api` and `sigs.k8s.io/mcs-api` that Karmada is built with, which
/// may differ from the embedded API server's.
const TYPES: &str = include_str!("types.txt");

fn lines() -> impl Iterator<Item = &'static str> {
    TYPES.lines().filter(|line| !line.starts_with('#'))
}

/// The parsed table, by name of the struct. It is parsed at the first use.
static STRUCTS: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let structs = lines().filter_map(|line| {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        Some((words.next()?, words.map(field).collect()))
    });
    structs.collect()
});

/// Returns the fields of a struct.
///
/// # Panics
/// The table has no such struct. A test checks each name in the table.
pub(super) fn fields(name: &str) -> &'static [Field] {
    STRUCTS.get(name).unwrap_or_else(|| panic!("types.txt has no line {name}"))
}

/// Returns the zero value of a type. Nil fields of a struct are left out.
pub(super) fn zero(r#type: &Type) -> Value {
    match r#type {
        Type::Bool => false.into(),
        Type::Int32 | Type::Int64 | Type::IntOrString => 0.into(),
        Type::String => "".into(),
        Type::Quantity => "0".into(),
        Type::Any | Type::Time | Type::List(_) | Type::Map(_) | Type::Pointer(_) => Value::Null,
        Type::Struct(name) => {
            let fields = fields(name).iter().map(|field| (field.name.to_owned(), zero(&field.r#type)));
            Value::Object(fields.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
        }
    }
}

/// Parses one `field:type` of the table.
fn field(word: &'static str) -> Field {
    let (name, text) = word.split_once(':').unwrap_or_else(|| panic!("types.txt: {word} has no type"));
    let (name, omitted) = match (name.strip_suffix('?'), name.strip_suffix('!')) {
        (Some(name), _) => (name, Omitted::Empty),
        (_, Some(name)) => (name, Omitted::Zero),
        _ => (name, Omitted::Never),
    };
    Field { name, r#type: parse(text), omitted }
}

/// Parses a type. A word that is not a known scalar is the name of a struct.
fn parse(text: &'static str) -> Type {
    match text {
        "any" => Type::Any,
        "bool" => Type::Bool,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "intstr" => Type::IntOrString,
        "quantity" => Type::Quantity,
        "string" => Type::String,
        "time" => Type::Time,
        _ => {
            let inner = |prefix| text.strip_prefix(prefix).map(|inner| Box::new(parse(inner)));
            None.or_else(|| inner("*").map(Type::Pointer))
                .or_else(|| inner("[]").map(Type::List))
                .or_else(|| inner("{}").map(Type::Map))
                .unwrap_or(Type::Struct(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structs_in(r#type: &Type) -> Option<&'static str> {
        match r#type {
            Type::Struct(name) => Some(name),
            Type::List(inner) | Type::Map(inner) | Type::Pointer(inner) => structs_in(inner),
            _ => None,
        }
    }

    #[test]
    fn every_struct_used_by_fields_is_listed() {
        let missing: Vec<_> = STRUCTS
            .values()
            .flatten()
            .filter_map(|field| structs_in(&field.r#type))
            .filter(|name| !STRUCTS.contains_key(name))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn each_struct_has_one_line() {
        assert_eq!(lines().count(), STRUCTS.len());
    }
}
