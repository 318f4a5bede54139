//! Parses JSON without duplicate fields in one pass.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Returns the value of a JSON document, or `None` if it is invalid or has a duplicate field.
pub(crate) fn unrepeated(text: &str) -> Option<Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Once.deserialize(&mut reader).ok()?;
    reader.end().ok().map(|()| value)
}

/// Builds a value, and fails at a duplicate field.
struct Once;

impl<'de> DeserializeSeed<'de> for Once {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if map.insert(name, fields.next_value_seed(Once)?).is_some() {
                return Err(A::Error::custom("a field comes twice"));
            }
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Once)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_without_duplicates_parses_as_usual() {
        for text in [
            r#"{"a":{"b":[1,-1,1.5,1e3,18446744073709551615,true,null,"x\u00e9"]},"c":""}"#,
            " [ ] ",
            "1",
            r#"{"a":1}x"#,
            r#"{"a":"#,
            r#"{"a":1e999}"#,
        ] {
            assert_eq!(unrepeated(text), serde_json::from_str(text).ok(), "{text}");
        }
        for text in [r#"{"a":1,"a":1}"#, r#"{"a":[{"b":1,"\u0062":2}]}"#] {
            assert_eq!(unrepeated(text), None, "{text}");
        }
    }
}
