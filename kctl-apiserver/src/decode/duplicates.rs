//! Finds duplicate fields in JSON, which `serde_json` and Go accept silently.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::REPORTED_LEN_MAX;
use crate::json_path::JsonPath;

/// Returns the paths of the first [`REPORTED_LEN_MAX`] duplicate fields, such as `spec.containers[0].image`. Returns
/// none if the bytes are not JSON. The last value of a duplicate field counts when the object is decoded, as in Go.
pub(crate) fn duplicates(bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let walked = DuplicateFinder { path: JsonPath::Root, found: &mut found }.deserialize(&mut reader);
    if walked.is_ok() { found } else { Vec::new() }
}

/// Visits JSON without building a value. Duplicate fields within a duplicate are reported too.
struct DuplicateFinder<'a> {
    /// The path of the visited value, formatted only for a duplicate.
    path: JsonPath<'a>,
    /// The paths of duplicates, in the order of the document.
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for DuplicateFinder<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

/// A name, which is copied only when it is written with escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for DuplicateFinder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = HashSet::with_hasher(foldhash::fast::RandomState::default());
        while let Some(Name(key)) = map.next_key()? {
            let path = JsonPath::Field(&self.path, &key);
            if keys.contains(&key) {
                if self.found.len() < REPORTED_LEN_MAX {
                    self.found.push(path.to_string());
                }
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(DuplicateFinder { path, found: self.found })?;
                keys.insert(key);
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            let path = JsonPath::Item(&self.path, index);
            if items.next_element_seed(DuplicateFinder { path, found: self.found })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{REPORTED_LEN_MAX, duplicates};

    #[test]
    fn duplicate_fields_are_reported_by_path() {
        for (json, paths) in [
            (r#"{"a":1,"b":{"c":null,"c":true}}"#, vec!["b.c"]),
            (r#"{"a":[{"b":1.5},{"b":"x","b":-1}],"a":{}}"#, vec!["a[1].b", "a"]),
            (r#"{"a":1,"b":1}"#, vec![]),
            (r#"{"a":1,"a":"#, vec![]),
        ] {
            assert_eq!(duplicates(json.as_bytes()), paths, "{json}");
        }
    }

    #[test]
    fn first_hundred_duplicate_fields_are_reported() {
        let fields = vec![r#""a":1"#; 150].join(",");
        assert_eq!(duplicates(format!(r#"{{"b":{{{fields}}}}}"#).as_bytes()), ["b.a"; REPORTED_LEN_MAX]);
    }
}
