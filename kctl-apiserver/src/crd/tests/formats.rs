//! Formats of strings.

use kctl_apimachinery::formats;
use serde_json::json;

#[test]
fn texts_have_the_formats_that_the_server_finds() {
    for (format, has, has_not) in [
        (
            "date-time",
            &["2020-01-01t00:00:00z", "2020-01-01T00:00:00.123+02:00", "2020-01-01T00:00:00+99:99"] as &[&str],
            &[
                "2020-13-01T00:00:00Z",
                "2020-01-01T00:00:00",
                "2020-01-01T24:00:00Z",
                "2020-01-01T23:59:60Z",
                "2020-02-30T00:00:00Z",
                "",
            ] as &[&str],
        ),
        ("date", &["2020-01-30"] as &[&str], &["2020-01-32"] as &[&str]),
        (
            "duration",
            &["1h", "1.5h", "-1h", "P1D", "1 day", "3 weeks", "1d2h"] as &[&str],
            &["", "h", "1 foo"] as &[&str],
        ),
        ("byte", &["YQ=="] as &[&str], &["YQ", "", "Y Q="] as &[&str]),
        ("email", &["a@b", "A <a@b>"] as &[&str], &["a@b@c", "a b@c", "???"] as &[&str]),
        (
            "uuid",
            &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11"] as &[&str],
            &["x"] as &[&str],
        ),
        (
            "uuid4",
            &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"] as &[&str],
            &["A0EEBC99-9C0B-3EF8-BB6D-6BB9BD380A11"] as &[&str],
        ),
        ("uuid3", &["A0EEBC99-9C0B-3EF8-BB6D-6BB9BD380A11"] as &[&str], &[] as &[&str]),
        ("ipv4", &["1.2.3.4", "01.1.1.1"] as &[&str], &["::1", "256.1.1.1", "1.2.3"] as &[&str]),
        ("ipv6", &["::1", "::ffff:1.2.3.4"] as &[&str], &["1.1.1.1", "fe80::1%eth0"] as &[&str]),
        ("cidr", &["1.1.1.1/8", "::1/64"] as &[&str], &["1.1.1.1", "1.1.1.1/33"] as &[&str]),
        ("uri", &["/a", "http://x", "mailto:x", "//x"] as &[&str], &["a b", "a", "http://a b"] as &[&str]),
        ("hostname", &["a", "example.com"] as &[&str], &["a.b", "a_b", "-a", "example.com."] as &[&str]),
        ("mac", &["aa:bb:cc:dd:ee:ff", "AA-BB-CC-DD-EE-FF", "aabb.ccdd.eeff"] as &[&str], &["aa:bb"] as &[&str]),
        ("password", &[""] as &[&str], &[] as &[&str]),
        ("bsonobjectid", &["507f1f77bcf86cd799439011"] as &[&str], &["x"] as &[&str]),
        ("isbn10", &["0-306-40615-2"] as &[&str], &["0306406153"] as &[&str]),
        ("isbn13", &["978-0-306-40615-7"] as &[&str], &["9780306406158"] as &[&str]),
        ("creditcard", &["4111111111111111", "4111 1111 1111 1111"] as &[&str], &["4111111111111112"] as &[&str]),
        ("ssn", &["123-45-6789"] as &[&str], &["123456789", "123"] as &[&str]),
        ("hexcolor", &["#fff", "#ffffff", "fff"] as &[&str], &["#ff"] as &[&str]),
        ("rgbcolor", &["rgb(1,2,3)", "rgb( 1, 2,3 )"] as &[&str], &["rgb(256,0,0)"] as &[&str]),
        ("k8s-short-name", &["a-b"] as &[&str], &["a.b", "A"] as &[&str]),
        ("k8s-long-name", &["a.b"] as &[&str], &["A"] as &[&str]),
    ] {
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
