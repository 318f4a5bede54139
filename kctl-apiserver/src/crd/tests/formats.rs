//! Formats of strings.

use kctl_apimachinery::formats;
use serde_json::json;

#[test]
fn texts_have_the_formats_that_the_server_finds() {
    let table: [(&str, &[&str], &[&str]); 24] = [
        (
            "date-time",
            &["2020-01-01t00:00:00z", "2020-01-01T00:00:00.123+02:00", "2020-01-01T00:00:00+99:99"],
            &[
                "2020-13-01T00:00:00Z",
                "2020-01-01T00:00:00",
                "2020-01-01T24:00:00Z",
                "2020-01-01T23:59:60Z",
                "2020-02-30T00:00:00Z",
                "",
            ],
        ),
        ("date", &["2020-01-30"], &["2020-01-32"]),
        ("duration", &["1h", "1.5h", "-1h", "P1D", "1 day", "3 weeks", "1d2h"], &["", "h", "1 foo"]),
        ("byte", &["YQ=="], &["YQ", "", "Y Q="]),
        ("email", &["a@b", "A <a@b>"], &["a@b@c", "a b@c", "???"]),
        ("uuid", &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"], &["x"]),
        ("uuid4", &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"], &["A0EEBC99-9C0B-3EF8-BB6D-6BB9BD380A11"]),
        ("uuid3", &["A0EEBC99-9C0B-3EF8-BB6D-6BB9BD380A11"], &[]),
        ("ipv4", &["1.2.3.4", "01.1.1.1"], &["::1", "256.1.1.1", "1.2.3"]),
        ("ipv6", &["::1", "::ffff:1.2.3.4"], &["1.1.1.1", "fe80::1%eth0"]),
        ("cidr", &["1.1.1.1/8", "::1/64"], &["1.1.1.1", "1.1.1.1/33"]),
        ("uri", &["/a", "http://x", "mailto:x", "//x"], &["a b", "a", "http://a b"]),
        ("hostname", &["a", "example.com"], &["a.b", "a_b", "-a", "example.com."]),
        ("mac", &["aa:bb:cc:dd:ee:ff", "AA-BB-CC-DD-EE-FF", "aabb.ccdd.eeff"], &["aa:bb"]),
        ("password", &[""], &[]),
        ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["x"]),
        ("isbn10", &["0-306-40615-2"], &["0306406153"]),
        ("isbn13", &["978-0-306-40615-7"], &["9780306406158"]),
        ("creditcard", &["4111111111111111", "4111 1111 1111 1111"], &["4111111111111112"]),
        ("ssn", &["123-45-6789"], &["123456789", "123"]),
        ("hexcolor", &["#fff", "#ffffff", "fff"], &["#ff"]),
        ("rgbcolor", &["rgb(1,2,3)", "rgb( 1, 2,3 )"], &["rgb(256,0,0)"]),
        ("k8s-short-name", &["a-b"], &["a.b", "A"]),
        ("k8s-long-name", &["a.b"], &["A"]),
    ];
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
