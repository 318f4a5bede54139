//! Formats of strings.

use kctl_apimachinery::formats;
use serde_json::json;

/// Checks each line of `formats.json`: a format, strings that have it, and strings that do not.
#[test]
fn string_formats_match_kube_apiserver() {
    let table: Vec<(&str, Vec<&str>, Vec<&str>)> = serde_json::from_str(include_str!("formats.json")).unwrap();
    assert_eq!(table.len(), 24);
    for (format, has, has_not) in table {
        for text in has {
            assert!(formats::matches(format, text), "{format} {text:?}");
        }
        for text in has_not {
            assert!(!formats::matches(format, text), "{format} {text:?}");
        }
    }
}

/// Recorded from kube-apiserver 1.36.3: a schema below a combinator has no type, but string formats are still checked.
#[test]
fn formats_below_combinators_are_checked() {
    let judge = |field: &serde_json::Value, value: serde_json::Value| {
        let schema = super::with_field(field);
        super::validate(super::Schema::structural(&schema), &json!({ "spec": { "f": value } }), None).is_empty()
    };
    let ipv4 = json!({ "format": "ipv4" });
    let either = json!({ "type": "string", "anyOf": [ipv4, { "format": "ipv6" }] });
    for (value, fits) in [("1.2.3.4", true), ("::1", true), ("1.2.3.4:8080", false)] {
        assert_eq!(judge(&either, json!(value)), fits, "anyOf: {value}");
    }
    for (field, value, fits) in [
        (json!({ "type": "string", "oneOf": [ipv4, { "format": "ipv6" }] }), json!("1.2.3.4:8"), false),
        (json!({ "type": "string", "allOf": [ipv4] }), json!("1.2.3"), false),
        (json!({ "type": "string", "not": ipv4 }), json!("1.2.3.4"), false),
        (json!({ "type": "string", "not": ipv4 }), json!("x"), true),
        (json!({ "type": "string", "nullable": true, "allOf": [ipv4] }), json!(null), true),
        (json!({ "type": "integer", "allOf": [ipv4] }), json!(5), false),
        (json!({ "type": "boolean", "allOf": [ipv4] }), json!(true), false),
        (json!({ "type": "array", "items": { "type": "string" }, "allOf": [ipv4] }), json!(["a"]), true),
        (json!({ "type": "array", "items": { "type": "string" }, "allOf": [{ "items": ipv4 }] }), json!(["a"]), false),
        (json!({ "type": "integer", "allOf": [{ "format": "int32" }] }), json!(3_000_000_000_u32), true),
        (json!({ "type": "string", "allOf": [{ "format": "nonsense" }] }), json!("a"), true),
    ] {
        assert_eq!(judge(&field, value.clone()), fits, "{field} {value}");
    }
}
