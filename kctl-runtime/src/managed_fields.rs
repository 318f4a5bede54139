//! Removes `metadata.managedFields` from the JSON of an object before it is cached.
//!
//! No reader of the cache needs these fields, and they take up to half of an object's bytes. The rest of the JSON is
//! unchanged, byte for byte: the fields are cut out, and the rest is not parsed and written again.

/// Returns `json` without the member whose value is `managed_fields`, and with `first` inserted after the opening
/// brace.
///
/// `managed_fields` must be a subslice of `json`: its address is the position. `first` is a list of members, each
/// followed by a comma; it may be empty. Everything else is kept byte for byte.
pub(crate) fn remove(json: &str, managed_fields: Option<&str>, first: &str) -> Box<str> {
    let (before, after) = match managed_fields {
        Some(value) => split_member(json, value),
        None => (json, ""),
    };
    let (open, before) = before.split_at(before.find('{').map_or(0, |brace| brace + 1));
    let mut result = String::with_capacity(open.len() + first.len() + before.len() + after.len());
    for part in [open, first, before, after] {
        result += part;
    }
    result.into()
}

/// Returns the JSON before and after the member that has `value`, a subslice of `json`, as its value. One of the two
/// commas around the member is removed with it.
fn split_member<'a>(json: &'a str, value: &str) -> (&'a str, &'a str) {
    let start = value.as_ptr() as usize - json.as_ptr() as usize;
    let (before, after) = (json[..start].trim_end(), json[start + value.len()..].trim_start());
    // The name `managedFields` contains no quotes, so the last one before it begins the string.
    let name_ends = before.strip_suffix(':').map_or(before, str::trim_end);
    let name = name_ends.strip_suffix('"').and_then(|rest| rest.rfind('"')).unwrap_or(name_ends.len());
    let before = json[..name].trim_end();
    match before.strip_suffix(',') {
        Some(before) => (before, after),
        None => (before, after.strip_prefix(',').unwrap_or(after)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::object::{Kind, Stored};

    fn remove(json: &str) -> String {
        let kind = Kind::of::<k8s_openapi::api::core::v1::Pod>();
        Stored::accept(&kind, json).unwrap().json().into_owned()
    }

    #[test]
    fn removal_keeps_all_other_bytes() {
        let cases = [
            (r#"{"metadata":{"name":"a","managedFields":[{"f":{}}]},"x":1}"#, r#"{"metadata":{"name":"a"},"x":1}"#),
            (r#"{"metadata":{"managedFields":[],"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
            (r#"{"metadata":{"name":"a","managedFields":[{"a":"]},"}]}}"#, r#"{"metadata":{"name":"a"}}"#),
            (
                "{ \"metadata\" : { \"name\" : \"a\" , \"managedFields\" : [ ] , \"b\" : 2 } }",
                "{ \"metadata\" : { \"name\" : \"a\" , \"b\" : 2 } }",
            ),
            (r#"{"metadata":{"managed\u0046ields":[1],"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
            (r#"{"metadata":{"managedFields":null,"name":"a"}}"#, r#"{"metadata":{"managedFields":null,"name":"a"}}"#),
            (
                r#"{"spec":{"managedFields":[1]},"metadata":{"name":"a"}}"#,
                r#"{"spec":{"managedFields":[1]},"metadata":{"name":"a"}}"#,
            ),
            (
                r#"{"metadata":{"annotations":{"managedFields":"x"},"managedFields":[2],"name":"a"}}"#,
                r#"{"metadata":{"annotations":{"managedFields":"x"},"name":"a"}}"#,
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(remove(json), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn trimming_removes_one_member_and_nothing_else(
            names in prop::collection::vec("[a-z\"\\\\,:{}]{0,4}", 0..4),
            position in 0_usize..5,
            pretty in any::<bool>(),
            text in ".{0,8}",
        ) {
            let mut object = json!({ "kind": text, "metadata": { "name": "o" }, "spec": { "managedFields": names } });
            for (idx, name) in names.iter().enumerate() {
                if idx == position {
                    object["metadata"]["managedFields"] = json!([{ "a": text }]);
                }
                // `uid` has to be a string, unlike other metadata fields with such a short name.
                object["metadata"][name] = if name == "uid" { json!("u") } else { json!({ text.clone(): [name] }) };
            }
            let json = if pretty { serde_json::to_string_pretty(&object).unwrap() } else { object.to_string() };
            let found: Value = serde_json::from_str(&remove(&json)).unwrap();
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
            prop_assert_eq!(found, object);
        }
    }
}
