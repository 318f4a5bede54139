//! Finds the JSON name of a Rust field by running the type's own deserializer.
//!
//! A view names fields as Rust does (`spec.pod_ip`); JSON may spell them another way (`podIP`). A
//! derived deserializer passes the names of all its members to `deserialize_struct`, so a deserializer
//! that fails with that list reveals them without any value.

use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error, Visitor},
    forward_to_deserialize_any,
};

/// Returns the JSON name of a Rust field of `T`.
///
/// An exact match in camel case wins, then one that differs in case and underscores alone. A type that
/// does not list its members (with `#[serde(flatten)]`) gets the name in camel case.
///
/// # Panics
/// If the type lists its members and none of them matches, as after `#[serde(rename = "…")]`.
pub(super) fn name_of<T: DeserializeOwned>(field: &str) -> Cow<'static, str> {
    let field = field.strip_prefix("r#").unwrap_or(field);
    let Some(names) = names_of::<T>() else { return camel_case(field).into() };
    let camel = camel_case(field);
    let exact = names.iter().find(|name| **name == camel);
    let same = exact.or_else(|| names.iter().find(|name| normalize(name) == normalize(field)));
    let Some(name) = same else {
        let type_name = std::any::type_name::<T>();
        panic!(
            "`{field}` of {type_name} has another name in JSON, one of: {}; have the view read {type_name} whole, or give the field its own name",
            names.join(", ")
        );
    };
    Cow::Borrowed(name)
}

/// Returns the members that a struct lists, `None` for a type that takes any name.
fn names_of<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    match T::deserialize(FieldNameProbe) {
        Err(ProbeError::Names(names)) => Some(names),
        _ => None,
    }
}

/// Returns the name in lower case without underscores, so that `pod_ip` equals `podIP`.
fn normalize(name: &str) -> String {
    name.chars().filter(|letter| *letter != '_').flat_map(char::to_lowercase).collect()
}

fn camel_case(field: &str) -> String {
    let mut words = field.split('_').filter(|word| !word.is_empty());
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

/// A deserializer without values: it fails with the field names that the type expects.
struct FieldNameProbe;

/// The error that carries the result of a [`FieldNameProbe`].
#[derive(Debug)]
enum ProbeError {
    Names(&'static [&'static str]),
    Nothing,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("asked for its names")
    }
}

impl std::error::Error for ProbeError {}

impl Error for ProbeError {
    fn custom<T: fmt::Display>(_text: T) -> Self {
        Self::Nothing
    }
}

impl<'de> Deserializer<'de> for FieldNameProbe {
    type Error = ProbeError;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, ProbeError> {
        Err(ProbeError::Nothing)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        names: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, ProbeError> {
        Err(ProbeError::Names(names))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::core::v1::{Pod, PodStatus, ServiceSpec, Volume},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    };
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Own {
        #[expect(dead_code, reason = "its name is asked for")]
        max_surge: i32,
        #[expect(dead_code, reason = "its name is asked for")]
        #[serde(rename = "elsewhere")]
        renamed: i32,
    }

    #[derive(Deserialize)]
    struct Open {
        #[expect(dead_code, reason = "it makes serde take any names")]
        #[serde(flatten)]
        rest: std::collections::BTreeMap<String, i32>,
    }

    #[test]
    fn rust_field_maps_to_its_json_name() {
        let cases = [
            (name_of::<Pod>("metadata"), "metadata"),
            (name_of::<PodStatus>("pod_ip"), "podIP"),
            (name_of::<PodStatus>("pod_ips"), "podIPs"),
            (name_of::<ServiceSpec>("cluster_ip"), "clusterIP"),
            (name_of::<ServiceSpec>("type_"), "type"),
            (name_of::<ObjectMeta>("annotations"), "annotations"),
            (name_of::<Volume>("iscsi"), "iscsi"),
            (name_of::<Own>("max_surge"), "maxSurge"),
            (name_of::<Own>("r#max_surge"), "maxSurge"),
            (name_of::<Open>("any_name"), "anyName"),
        ];
        for (name, expected) in cases {
            assert_eq!(name, expected);
        }
    }

    #[test]
    #[should_panic(expected = "has another name in JSON, one of: maxSurge, elsewhere")]
    fn renamed_field_panics_with_the_members() {
        name_of::<Own>("renamed");
    }
}
