//! The table of Go types: which fields a struct has, what they hold, and when they are left out.

use std::{collections::HashMap, sync::LazyLock};

use serde_json::{Map, Value};

/// A Go type, as far as its JSON depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Any,
    Bool,
    Int32,
    Int64,
    IntOrString,
    Quantity,
    String,
    Time,
    List(Box<Type>),
    Map(Box<Type>),
    Pointer(Box<Type>),
    Struct(&'static str),
}

/// A field of a struct. Embedded structs are already flattened, as their JSON is.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) r#type: Type,
    pub(super) omitted: Omitted,
}

/// When a field is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Omitted {
    Never,
    /// `omitempty`: false, 0, "", nil and what has no items; never a struct.
    Empty,
    /// `omitzero`: also a zero struct.
    Zero,
}

/// One line a struct: its name, then `field:type` each. After the name of a field `?` stands for `omitempty` and `!` for
/// `omitzero`; before a type `*` is a pointer, `[]` a list and `{}` a map by text. The lines were printed by reflection
/// over `k8s.io/api` v0.36 and `sigs.k8s.io/mcs-api`, the versions that Karmada f8fdd02df is built with.
const TYPES: &str = include_str!("types.txt");

static STRUCTS: LazyLock<HashMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let structs = TYPES.lines().filter_map(|line| {
        let mut words = line.split(' ').filter(|word| !word.is_empty());
        Some((words.next()?, words.map(field).collect()))
    });
    structs.collect()
});

/// Returns the fields of a struct.
///
/// # Panics
/// The table has no such struct: every name in this crate and in the table is tested.
pub(super) fn fields(name: &str) -> &'static [Field] {
    STRUCTS.get(name).unwrap_or_else(|| panic!("types.txt has no line {name}"))
}

/// Returns the value of a type that nothing was given for.
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

fn field(word: &'static str) -> Field {
    let (name, text) = word.split_once(':').unwrap_or_else(|| panic!("types.txt: {word} has no type"));
    let (name, omitted) = match (name.strip_suffix('?'), name.strip_suffix('!')) {
        (Some(name), _) => (name, Omitted::Empty),
        (_, Some(name)) => (name, Omitted::Zero),
        _ => (name, Omitted::Never),
    };
    Field { name, r#type: parse(text), omitted }
}

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
    fn every_struct_that_a_field_names_has_a_line() {
        let missing: Vec<_> = STRUCTS
            .values()
            .flatten()
            .filter_map(|field| structs_in(&field.r#type))
            .filter(|name| !STRUCTS.contains_key(name))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn a_struct_has_one_line() {
        assert_eq!(TYPES.lines().count(), STRUCTS.len());
    }
}
