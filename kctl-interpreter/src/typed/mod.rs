//! The types of the built-in kinds as Go has them: objects go in as JSON, become values with every field, and come out
//! as Karmada would write them.
//!
//! Karmada turns an object into its Go type and back whenever it looks inside. That is visible: fields that the type
//! does not have are gone, empty optional ones too, and required ones appear as `null`, `""`, `0` or `{}`. The table
//! `types.txt` says how each field behaves.

mod decode;
mod encode;
mod table;
pub(crate) mod time;

use serde_json::Value;

pub(crate) use self::decode::DecodeError;
use self::table::Type;

/// A value of a Go type: a struct is an object with all of its fields, and a nil pointer, list, map or time is null.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Typed {
    name: &'static str,
    value: Value,
}

impl Typed {
    /// Reads an object the way `runtime.DefaultUnstructuredConverter` does: names are exact, large numbers wrap.
    pub(crate) fn from_object(name: &'static str, object: &Value) -> Result<Self, DecodeError> {
        Ok(Self { name, value: decode::convert(&Type::Struct(name), object)? })
    }

    /// Reads JSON the way `encoding/json` does: names match in any case, large numbers are errors.
    pub(crate) fn from_json(name: &'static str, json: &Value) -> Result<Self, DecodeError> {
        Ok(Self { name, value: decode::unmarshal(&Type::Struct(name), json)? })
    }

    /// Returns the zero value of a type.
    pub(crate) fn zero(name: &'static str) -> Self {
        Self { name, value: table::zero(&Type::Struct(name)) }
    }

    /// Returns the object as Karmada would write it.
    pub(crate) fn to_object(&self) -> Value {
        encode::encode(&Type::Struct(self.name), &self.value)
    }

    /// Returns a part of the value as Karmada would write it, the part being of the struct `name` or a list of it.
    pub(crate) fn encode_part(name: &'static str, part: &Value) -> Value {
        match part {
            Value::Array(items) => items.iter().map(|item| encode::encode(&Type::Struct(name), item)).collect(),
            part => encode::encode(&Type::Struct(name), part),
        }
    }

    /// Returns the value at a JSON pointer; null when there is none, as behind a nil pointer.
    pub(crate) fn at(&self, pointer: &str) -> &Value {
        self.value.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// Returns the place at a JSON pointer. It must exist in every value of the type.
    pub(crate) fn at_mut(&mut self, pointer: &str) -> &mut Value {
        let name = self.name;
        self.value.pointer_mut(pointer).unwrap_or_else(|| panic!("every {name} has the field {pointer}"))
    }

    /// Returns the number at a JSON pointer; 0 when there is none.
    pub(crate) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_default()
    }

    /// Returns the number behind a pointer of Go; `None` when that is nil.
    pub(crate) fn optional_number(&self, pointer: &str) -> Option<i64> {
        self.at(pointer).as_i64()
    }

    /// Returns the text at a JSON pointer; empty when there is none.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    /// Returns the items of the list at a JSON pointer; none when it is nil.
    pub(crate) fn list(&self, pointer: &str) -> &[Value] {
        self.at(pointer).as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the whole value.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Gives the value up.
    pub(crate) fn into_value(self) -> Value {
        self.value
    }
}
