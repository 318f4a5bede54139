//! Cuts managedFields out of the JSON of an object: nothing that reads the cache needs them, and they are up to half of it.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The JSON of an object's metadata, or nothing when it has none.
///
/// # Errors
/// When the JSON is broken.
pub(crate) fn metadata_of(json: &str) -> Result<Option<&str>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        metadata: Option<&'a RawValue>,
    }
    Ok(serde_json::from_str::<Head<'_>>(json)?.metadata.map(RawValue::get))
}

/// The JSON without the managedFields that are in `metadata`, a part of it. Everything else stays byte for byte.
///
/// # Errors
/// When `metadata` is not an object.
pub(crate) fn without_managed_fields(json: &str, metadata: Option<&str>) -> Result<Box<str>, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Fields<'a> {
        #[serde(borrow)]
        managed_fields: Option<&'a RawValue>,
    }
    let Some(metadata) = metadata else { return Ok(json.into()) };
    let fields: Fields<'_> = serde_json::from_str(metadata)?;
    Ok(match fields.managed_fields {
        Some(fields) => without(json, fields.get()),
        None => json.into(),
    })
}

/// The JSON without the member of which `value`, a part of it, is the value.
fn without(json: &str, value: &str) -> Box<str> {
    let start = value.as_ptr() as usize - json.as_ptr() as usize;
    let (before, after) = (json[..start].trim_end(), json[start + value.len()..].trim_start());
    // The name is in quotes and has none in it.
    let name_ends = before.strip_suffix(':').map_or(before, str::trim_end);
    let name = name_ends.strip_suffix('"').and_then(|rest| rest.rfind('"')).unwrap_or(name_ends.len());
    let before = json[..name].trim_end();
    match before.strip_suffix(',') {
        Some(before) => [before, after].concat(),
        None => [before, after.strip_prefix(',').unwrap_or(after)].concat(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn trimmed(json: &str) -> Result<Box<str>, serde_json::Error> {
        without_managed_fields(json, metadata_of(json)?)
    }

    #[test]
    fn only_the_managed_fields_of_the_metadata_go_and_the_rest_stays_byte_for_byte() {
        let cases = [
            (r#"{"metadata":{"name":"a","managedFields":[{"f":{}}]},"x":1}"#, r#"{"metadata":{"name":"a"},"x":1}"#),
            (r#"{"metadata":{"managedFields":[],"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
            (r#"{"metadata":{"managedFields":[{"a":"]},"}]}}"#, r#"{"metadata":{}}"#),
            (
                "{ \"metadata\" : { \"a\" : 1 , \"managedFields\" : [ ] , \"b\" : 2 } }",
                "{ \"metadata\" : { \"a\" : 1 , \"b\" : 2 } }",
            ),
            (r#"{"metadata":{"managed\u0046ields":[1],"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
            (r#"{"metadata":{"managedFields":null,"name":"a"}}"#, r#"{"metadata":{"managedFields":null,"name":"a"}}"#),
            (r#"{"spec":{"managedFields":[1]},"metadata":{}}"#, r#"{"spec":{"managedFields":[1]},"metadata":{}}"#),
            (r#"{"spec":1}"#, r#"{"spec":1}"#),
            (r#"{"metadata":null}"#, r#"{"metadata":null}"#),
            (
                r#"{"metadata":{"annotations":{"managedFields":"x"},"managedFields":[2]}}"#,
                r#"{"metadata":{"annotations":{"managedFields":"x"}}}"#,
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(&*trimmed(json).unwrap(), expected);
        }
        for broken in ["", "{", "[]", r#"{"metadata":3}"#, r#"{"metadata":{"managedFields":[}}"#] {
            assert!(trimmed(broken).is_err(), "{broken}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn trimming_removes_one_member_and_nothing_else(
            names in prop::collection::vec("[a-z\"\\\\,:{}]{0,4}", 0..4),
            at in 0_usize..5,
            pretty in any::<bool>(),
            text in ".{0,8}",
        ) {
            let mut object = json!({ "kind": text, "metadata": {}, "spec": { "managedFields": names } });
            for (idx, name) in names.iter().enumerate() {
                if idx == at {
                    object["metadata"]["managedFields"] = json!([{ "a": text }]);
                }
                object["metadata"][name] = json!({ text.clone(): [name] });
            }
            let json = if pretty { serde_json::to_string_pretty(&object).unwrap() } else { object.to_string() };
            let found: Value = serde_json::from_str(&trimmed(&json).unwrap()).unwrap();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            prop_assert_eq!(found, object);
        }
    }
}
